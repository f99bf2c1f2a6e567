// Errors of a run that end with one line: wrong options, and what the user can change. All other classes of errors are bugs of
// the benchmark and keep their stack.

/** Wrong options. Nothing was started; the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** One line for what our own code or the system reported; the stack of everything else. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return `bench: ${String(error)}`;
  const isReported = error instanceof UsageError || Object.getPrototypeOf(error) === Error.prototype;
  if (!isReported) return error.stack ?? error.message;
  return `bench: ${error.message.trim().replaceAll(/\s*\n\s*/g, ' | ')}`;
}
