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
    place = placeOf(error, text);
  }
  throw new InputError(`${file}${place}: not valid JSON`);
}

function placeOf(error: unknown, text: string): string {
  const position = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined;
  if (position === undefined) return '';
  const before = text.slice(0, Number(position)).split('\n');
  return `:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}
