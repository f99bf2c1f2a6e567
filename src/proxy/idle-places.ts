// How many connections to hosts the process keeps idle, over all sandboxes. Each holds a descriptor that a client, a host
// or a change of the rules may need, and one client can leave one at every name that it thinks of.
export type IdlePlaces = {
  readonly areTaken: boolean;
  /** Over the limit too: who asks `areTaken` first keeps to it. */
  take(): void;
  give(count: number): void;
};

export function createIdlePlaces(max: number): IdlePlaces {
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
