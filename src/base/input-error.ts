// What the operator gave and can mend, as an error: a start that ends by one ends with code 2. Anything else is a fault
// of the machine or of ours.

export class InputError extends Error {
  override readonly name: string = 'InputError';
}

/** Runs `read` on what the operator gave: what it finds wrong there is an InputError. A bug stays a bug. */
export async function readInput<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'Error') throw error;
    throw new InputError(error.message, { cause: error });
  }
}
