// Waits for something for a limited time: what hangs costs one operation an error, and nobody else anything.

/** Rejects with an Error of this text when `work` takes longer. The work itself goes on. */
export async function within<T>(work: Promise<T>, ms: number, text: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`${text} (within ${ms / 1_000} s)`)), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
