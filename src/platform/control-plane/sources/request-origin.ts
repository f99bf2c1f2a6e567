// Access that also knows where the caller has reached the platform: addresses in responses lead back there.
import type { Access, Entry, Grant } from '../../api/access.ts';

export type WithOrigin = {
  /** `https://platform.example.com`, with the prefix that the path of the request had. */
  readonly baseUrl: string;
};

export function withOrigin<G extends Grant>(access: Access<G>): Access<G & WithOrigin> {
  const added = (entry: Entry): WithOrigin => ({ baseUrl: baseUrlOf(entry) });
  return {
    ...access,
    enter: async (entry) => ({ ...(await access.enter(entry)), ...added(entry) }),
    recall(entry) {
      const granted = access.recall?.(entry);
      return granted && { ...granted, ...added(entry) };
    },
    confirm: async (entry, granted) => ({ ...(await access.confirm(entry, granted)), ...added(entry) }),
  };
}

const PREFIX = '/api-host';

/** Without TLS off loopback, where sessions are not allowed, the address that the client has sent. */
function baseUrlOf({ origin, head }: Pick<Entry, 'origin' | 'head'>): string {
  const prefix = head.target.startsWith(`${PREFIX}/`) ? PREFIX : '';
  return `${origin ?? `http://${head.host ?? 'localhost'}`}${prefix}`;
}
