// Polls a value outside of this process until it is as expected or a deadline has passed. For values without an event: the
// kernel's statistics of another process.

const LOOK_MS = 25;

/** The first value that `isThere` accepts, or the last one when the time has expired. */
export async function lookUntil<T>(
  look: () => T,
  isThere: (value: T) => boolean,
  withinMs: number,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const value = look();
    if (isThere(value) || performance.now() >= deadline) return value;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
