// Looks at something outside of this process until it is as expected or its deadline has passed. For what sends no
// event: the kernel's books of another process.

const LOOK_MS = 25;

/** The last value seen: the first one that `isThere` accepts, or whatever it is when the time is over. */
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
