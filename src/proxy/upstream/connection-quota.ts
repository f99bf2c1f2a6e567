// How many connections to hosts the process has, and how many of them it keeps idle, over all sandboxes. Each holds a
// descriptor that a client, a host or a change of the rules may need, and one client can ask for many: one at every name
// that it thinks of, or one for each of its streams.
export type Places = {
  readonly areTaken: boolean;
  /** Over the limit too: who asks `areTaken` first keeps to it. */
  take(): void;
  give(count: number): void;
};

export function createPlaces(max: number): Places {
  let taken = 0;
  return {
    get areTaken() {
      return taken >= max;
    },
    take() {
      taken += 1;
    },
    give(count) {
      taken -= count;
    },
  };
}
