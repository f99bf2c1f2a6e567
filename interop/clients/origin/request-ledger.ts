// What the origin has seen since the last `take`: every request, with what it had as credential.
import type { IncomingHttpHeaders } from 'node:http';
import type { Credentials } from '../rules.ts';
import type { SeenRequest } from '../verdict.ts';

export type RequestLedger = {
  /** Enters a request and says whether its credential is right. */
  enter(request: {
    readonly host: string;
    readonly path: string;
    readonly httpVersion: string;
    readonly headers: IncomingHttpHeaders;
  }): boolean;
  /** What came since the last call. */
  take(): readonly SeenRequest[];
};

export function createRequestLedger(credentials: Credentials): RequestLedger {
  let seen: SeenRequest[] = [];
  const judge = (host: string, headers: IncomingHttpHeaders): SeenRequest['credential'] => {
    const expected = credentials.expected(host);
    if (expected === undefined) return 'none';
    const [header, value] = expected;
    if (headers[header] === undefined) return 'none';
    return headers[header] === value ? 'right' : 'wrong';
  };
  return {
    enter({ host, path, httpVersion, headers }) {
      const credential = judge(host, headers);
      seen.push({ host, path, httpVersion, credential });
      return credential === 'right';
    },
    take() {
      const taken = seen;
      seen = [];
      return taken;
    },
  };
}
