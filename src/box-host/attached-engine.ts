// Boxes that somebody else runs, for example in a container: only their listener is ours, and nothing is isolated.
import type { BoxEngine, Capability } from './engine.ts';
import { BoxError } from './box-error.ts';

export type PortRange = { readonly host: string; readonly first: number; readonly last: number };

/** `127.0.0.1:0` (any free port), `10.0.0.1:20000-20999`, `[::1]:0`; a sentence if it is none of these. */
export function parsePortRange(text: string): PortRange | string {
  const found =
    /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[0-9.]+)):(?<first>\d{1,5})(?:-(?<last>\d{1,5}))?$/.exec(text);
  const { v6, host = v6 ?? '', first: from = '', last: to = from } = found?.groups ?? {};
  const [first, last] = [Number(from), Number(to)];
  const isRange = found !== null && first <= last && last <= 65_535 && (first > 0 || last === 0);
  return isRange
    ? { host, first, last }
    : 'must be address:port or address:first-last, as in 10.0.0.1:20000-20999';
}

const NOT_HELD: Capability = {
  is_held: false,
  reason: 'Boxes of the runtime "attached" are run by somebody else: this machine only serves their proxy',
};

/** `takenPorts`: those of the boxes of this machine, also of stopped ones, which have them again when they start. */
export function createAttachedEngine(range: PortRange, takenPorts: () => ReadonlySet<number>): BoxEngine {
  const needsToken = !/^(?:127\.|::1$)/.test(range.host);
  return {
    kind: 'attached',
    version: undefined,
    snapshots: undefined,
    capabilities: async () => ({ isolation: NOT_HELD, limits: NOT_HELD, storage: NOT_HELD, agent: NOT_HELD }),
    async open(_, { port: before }) {
      const port = before ?? freePort(range, takenPorts());
      return {
        listen: { host: range.host, port, needsToken },
        ended: new Promise<string>(() => undefined),
        openAgent: undefined,
        close: async () => undefined,
      };
    },
    remove: async () => undefined,
    close: async () => undefined,
  };
}

/** 0: any that the system has free. */
function freePort({ first, last }: PortRange, taken: ReadonlySet<number>): number {
  if (first === 0) return 0;
  for (let port = first; port <= last; port += 1) if (!taken.has(port)) return port;
  throw new BoxError(
    'no_capacity',
    `All ports from ${first} to ${last} belong to boxes: remove one, or use more ports`,
  );
}
