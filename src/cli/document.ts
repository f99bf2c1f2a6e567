// Reads a JSON document that a person wrote. Errors give the position, never the text there: it may be a credential.
import { createReadStream } from 'node:fs';
import { InputError } from '../base/input-error.ts';
import { type JsonError, parseJsonDocument, positionOfSyntaxError } from '../base/json-document.ts';
import { codeOf } from '../tls/pem-files.ts';

/** The parsed JSON of `file`, at most 4 MiB; throws an InputError with file, line and column. */
export async function readDocument(file: string): Promise<unknown> {
  const text = await readText(file);
  const reading = parseJsonDocument(text);
  if (reading.ok) return reading.value;
  const { kind, position } = reading.error;
  throw new InputError(`${file}${positionOf(position ?? searchPosition(text), text)}: ${ERRORS[kind]}`);
}

const MAX_BYTES = 4 * 2 ** 20;

const ERRORS: Readonly<Record<JsonError['kind'], string>> = {
  not_json: 'not valid JSON',
  repeated_name: 'this name occurs twice in one object',
  too_deep: 'nested deeper than 32 levels',
};

async function readText(file: string): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    // Read instead of asking for the size: a pipe has no size and a device no end. `end` is inclusive.
    for await (const chunk of createReadStream(file, { end: MAX_BYTES })) chunks.push(chunk);
  } catch (error) {
    throw new InputError(`${file} cannot be read: ${codeOf(error) ?? 'unknown error'}`, { cause: error });
  }
  const bytes = Buffer.concat(chunks);
  if (bytes.length > MAX_BYTES) throw new InputError(`${file} is larger than 4 MiB`);
  return bytes.toString('utf8');
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
