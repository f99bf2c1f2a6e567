// Reads a JSON document that a person wrote. Errors give the position, never the text there: it may be a credential.
import { createReadStream } from 'node:fs';
import { InputError } from '../base/input-error.ts';
import { type JsonError, parseJsonDocument } from '../base/json/json-document.ts';
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

async function parse(name: string, text: string): Promise<unknown> {
  const reading = parseJsonDocument(text);
  if (reading.ok) return reading.value;
  const { kind, position } = reading.error;
  // Loaded only for an error: every start reads documents.
  const { placeOf, syntaxMistake } = await import('../base/json/json-mistake.ts');
  // A file is read once, so the search for the position may take its time.
  const place = placeOf(text, position, MAX_BYTES);
  const where = place === undefined ? '' : `:${place.line}:${place.column}`;
  const mistake = kind === 'not_json' && place ? `: ${syntaxMistake(text, place.position)}` : '';
  throw new InputError(`${name}${where}: ${ERRORS[kind]}${mistake}`);
}

const MAX_BYTES = 4 * 2 ** 20;

const ERRORS: Readonly<Record<JsonError['kind'], string>> = {
  not_json: 'not valid JSON',
  repeated_name: 'this name occurs twice in one object',
  too_deep: 'nested deeper than 32 levels',
  too_many_names: 'more names than any document can have',
  too_many_values: 'more values than any document can have',
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
