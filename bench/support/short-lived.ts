// Clients that live for one request: TCP, CONNECT, a TLS handshake, one request, close; one after the other, or several at
// once. The latency counts from the start of the TCP connection to the end of the response.
import type { EphemeralKeyInfo } from 'node:tls';
import { type Target, openConnection } from './connection.ts';

export type ShortLived = {
  /** Used in turn. */
  readonly targets: readonly Target[];
  /** How many clients exist at a time. */
  readonly lanes: number;
  readonly durationMs: number;
  /** At most so many clients; by default as many as the time permits. */
  readonly count?: number;
  /** The groups of the key exchange that clients offer. */
  readonly groups?: string;
  /** Whether a client resumes the TLS session of the one before. */
  readonly isResumed?: boolean;
};

export type ShortLivedResult = {
  readonly latencies: Float64Array;
  readonly seconds: number;
  readonly cpuMs: number;
  /** The groups that were negotiated, and how many handshakes were resumed. */
  readonly groups: readonly string[];
  readonly resumed: number;
  readonly suites: readonly string[];
};

export async function runShortLived(load: ShortLived): Promise<ShortLivedResult> {
  const { targets, lanes, durationMs, count = Infinity } = load;
  const latencies: number[] = [];
  const groups = new Set<string>();
  const suites = new Set<string>();
  let started = 0;
  let resumed = 0;
  const usage = process.cpuUsage();
  const startMs = performance.now();

  const runLane = async (): Promise<void> => {
    let session: Buffer | undefined;
    while (started < count && performance.now() - startMs < durationMs) {
      const target = targets[started++ % targets.length];
      if (target === undefined) throw new Error('there is no target');
      const beganMs = performance.now();
      const client = await runClient(target, load, session);
      latencies.push(performance.now() - beganMs);
      ({ session } = client);
      suites.add(client.suite);
      groups.add(client.group);
      if (client.isReused) resumed += 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, runLane));
  const { user, system } = process.cpuUsage(usage);
  return {
    latencies: Float64Array.from(latencies),
    seconds: (performance.now() - startMs) / 1000,
    cpuMs: (user + system) / 1000,
    groups: [...groups],
    resumed,
    suites: [...suites],
  };
}

type Client = {
  readonly session: Buffer | undefined;
  readonly suite: string;
  readonly group: string;
  readonly isReused: boolean;
};

async function runClient(target: Target, load: ShortLived, session: Buffer | undefined): Promise<Client> {
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => undefined);
  const { groups, isResumed = false } = load;
  const connection = await openConnection(target, reject, {
    ...(groups === undefined ? {} : { groups }),
    session: isResumed ? session : undefined,
  });
  const { socket, suite } = connection;
  let next: Buffer | undefined;
  if (isResumed) socket.on('session', (ticket) => (next = ticket));
  await Promise.race([new Promise<void>((done) => connection.exchange(done)), failed]);
  const { name = 'none' } = (socket.getEphemeralKeyInfo() ?? {}) as Partial<EphemeralKeyInfo>;
  const client = { session: next ?? session, suite, group: name, isReused: socket.isSessionReused() };
  connection.close();
  return client;
}
