// Reads a JSON document that a person wrote. Errors say where in the file, never what stood there: it may hold a
// credential.
import { createReadStream } from 'node:fs';
import { InputError } from '../base/input-error.ts';
import { type JsonError, parseJsonDocument, positionOfSyntaxError } from '../base/json-document.ts';

/** The parsed JSON of `file`, at most 4 MiB; throws an InputError with file, line and column. */
export async function readDocument(file: string): Promise<unknown> {
  const text = await readText(file);
  const reading = parseJsonDocument(text);
  if (reading.ok) return reading.value;
  const { kind, position } = reading.error;
  throw new InputError(`${file}${placeOf(position ?? searchPosition(text), text)}: ${ERRORS[kind]}`);
}

const MAX_BYTES = 4 * 2 ** 20;

const ERRORS: Readonly<Record<JsonError['kind'], string>> = {
  not_json: 'not valid JSON',
  repeated_name: 'this name is given twice in one object',
  too_deep: 'nested deeper than 32 levels',
};

async function readText(file: string): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    // Not its size: a pipe has none, a device no end. `end` counts the byte it names.
    for await (const chunk of createReadStream(file, { end: MAX_BYTES })) chunks.push(chunk);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new InputError(`${file} cannot be read: ${code}`, { cause: error });
  }
  const bytes = Buffer.concat(chunks);
  if (bytes.length > MAX_BYTES) throw new InputError(`${file}: larger than 4 MiB`);
  return bytes.toString('utf8');
}

/** Where the parser does not say: the first character that no valid document could have there. */
function searchPosition(text: string): number {
  let [good, bad] = [0, text.length];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (isBeginning(text.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

/** True for a text that could go on to become JSON: what the parser misses lies behind its end. */
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

function placeOf(position: number, text: string): string {
  const before = text.slice(0, position).split('\n');
  return `:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}
