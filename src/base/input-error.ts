// An error in what the operator supplied: a start that fails with one exits with code 2. Every other error is of the
// machine or a bug.

export class InputError extends Error {
  override readonly name: string = 'InputError';
}

/** Runs `read` on what the operator supplied and turns a plain Error into an InputError. A TypeError and the like stay. */
export async function readInput<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'Error') throw error;
    throw new InputError(error.message, { cause: error });
  }
}
