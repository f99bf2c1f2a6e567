// A limit for upstream connections of the whole process, over all sandboxes: one for those in use, one for idle ones.
// Each connection takes a file descriptor, and one client can ask for many: one for each name it invents, or for each
// of its streams.
export type ConnectionQuota = ReturnType<typeof createConnectionQuota>;

export function createConnectionQuota(max: number) {
  let taken = 0;
  return {
    get isExhausted(): boolean {
      return taken >= max;
    },
    get taken(): number {
      return taken;
    },
    max,
    /** Counts one more, also above the limit: callers check `isExhausted` first. */
    take(): void {
      taken += 1;
    },
    release(count: number): void {
      taken -= count;
    },
  };
}
