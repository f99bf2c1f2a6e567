// What is compared: ways from a client to the same origin, and the processes in between. The list is made once for a run;
// each question selects what it applies to.
import type { Target } from './connection.ts';
import { requestHeads } from './heads.ts';
import type { OriginCounts } from './origin.ts';
import { type Scene, hosts } from './scene.ts';

export type Protocol = keyof Pick<OriginCounts, 'h1' | 'h2'>;

export type Subject = {
  readonly name: string;
  readonly about: string;
  /** The first process between client and origin; the figures are those of it and of all that it started. */
  readonly pid: number | undefined;
  /** The protocols between client and process. */
  readonly protocols: readonly Protocol[];
  /** The protocol to the origin for clients of HTTP/2, when it differs. */
  readonly upstream?: Protocol;
  /** Whether it is a forward proxy: it reaches any origin by CONNECT, not only the one of its configuration. */
  readonly isForward: boolean;
  /** How a client reaches the origin on this port. */
  target(originPort: number): Target;
};

export type Reach = {
  readonly port: number;
  readonly caPem: string;
  readonly host?: string;
  /** By default /v1: below it the origin requires the injected credential. */
  readonly folder?: '/v0' | '/v1';
  /** More header lines of the client. */
  readonly extra?: readonly string[];
};

/** Through a forward proxy, with CONNECT. */
export function throughProxy({
  port,
  caPem,
  host = hosts.rule,
  folder = '/v1',
  extra,
}: Reach): Subject['target'] {
  return cached((originPort) => {
    const authority = `${host}:${originPort}`;
    return { port, connectTo: authority, host, caPem, heads: requestHeads(authority, folder, extra) };
  });
}

/** Through a reverse proxy, with TLS to its port; it always asks the same origin. */
export function throughReverseProxy({ port, caPem, host = hosts.rule }: Reach): Subject['target'] {
  return cached((originPort) => ({ port, host, caPem, heads: requestHeads(`${host}:${originPort}`, '/v1') }));
}

export function directSubject({ caPem }: Scene): Subject {
  return {
    name: 'direct',
    about: 'client to origin without a proxy: the limit of client and origin',
    pid: undefined,
    protocols: ['h1', 'h2'],
    isForward: true,
    target: cached((port) => ({
      port,
      host: hosts.rule,
      caPem,
      heads: requestHeads(`${hosts.rule}:${port}`, '/v0'),
    })),
  };
}

/** The same heads for every measurement. */
function cached(create: (originPort: number) => Target): Subject['target'] {
  const known = new Map<number, Target>();
  return (originPort) => {
    const target = known.get(originPort) ?? create(originPort);
    known.set(originPort, target);
    return target;
  };
}
