// Reads a JSON document that a person wrote. Errors say where in the file, never what stood there: it may hold a
// credential.
import { readFile } from 'node:fs/promises';

/** Something that the operator gave and can mend: the program ends with code 2. */
export class InputError extends Error {
  override readonly name: string = 'InputError';
}

/** The parsed JSON of `file`; throws an InputError with file, line and column. */
export async function readDocument(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new InputError(
      `${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`,
      {
        cause: error,
      },
    );
  }
  let place: string;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The parser's own message quotes the text around the fault, so it goes no further.
    place = placeOf(positionOf(error) ?? searchPosition(text), text);
  }
  throw new InputError(`${file}${place}: not valid JSON`);
}

function positionOf(error: unknown): number | undefined {
  const position = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined;
  return position === undefined ? undefined : Number(position);
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
    const position = positionOf(error);
    if (position !== undefined) return position >= text.length;
    return error instanceof Error && error.message.includes('end of JSON input');
  }
}

function placeOf(position: number, text: string): string {
  const before = text.slice(0, position).split('\n');
  return `:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}
