// Reads a JSON document that a person wrote. Errors give the position, never the text there: it may be a credential.
import { createReadStream } from 'node:fs';
import { InputError } from '../base/input-error.ts';
import { type JsonError, parseJsonDocument, positionOfSyntaxError } from '../base/json-document.ts';
import { codeOf } from '../tls/pem-files.ts';

/** The parsed JSON of `file`, at most 4 MiB; throws an InputError with file, line and column. */
export async function readDocument(file: string): Promise<unknown> {
  // Read instead of asking for the size: a pipe has no size and a device no end. `end` is inclusive.
  return parse(file, await readText(file, createReadStream(file, { end: MAX_BYTES })));
}

/** The same for what is on standard input. */
export async function readStandardInput(): Promise<unknown> {
  return parse(standardInput, await readText(standardInput, process.stdin));
}

/** The name of standard input in messages. */
export const standardInput = 'standard input';

function parse(name: string, text: string): unknown {
  const reading = parseJsonDocument(text);
  if (reading.ok) return reading.value;
  const { kind, position } = reading.error;
  throw new InputError(`${name}${positionOf(position ?? searchPosition(text), text)}: ${ERRORS[kind]}`);
}

const MAX_BYTES = 4 * 2 ** 20;

const ERRORS: Readonly<Record<JsonError['kind'], string>> = {
  not_json: 'not valid JSON',
  repeated_name: 'this name occurs twice in one object',
  too_deep: 'nested deeper than 32 levels',
};

async function readText(name: string, stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BYTES) break;
    }
  } catch (error) {
    throw new InputError(`${name} cannot be read: ${codeOf(error) ?? 'unknown error'}`, { cause: error });
  }
  if (size > MAX_BYTES) throw new InputError(`${name} is larger than 4 MiB`);
  return Buffer.concat(chunks).toString('utf8');
}

/** For errors without a position: the first character that no valid document could have there. */
function searchPosition(text: string): number {
  let [good, bad] = [0, text.length];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (isBeginning(text.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

/** True for the beginning of a JSON text: the parser misses something only after its end. */
function isBeginning(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const position = positionOfSyntaxError(error);
    if (position !== undefined) return position >= text.length;
    return error instanceof Error && error.message.includes('end of JSON input');
  }
}

function positionOf(position: number, text: string): string {
  const before = text.slice(0, position).split('\n');
  return `:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}
