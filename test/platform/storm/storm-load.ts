// Clients that write to the processes of a storm, and the kills of these processes at random moments.
import type { Random } from '../../http1/mutation.ts';
import { runStormClient, type StormAccess } from './storm-client.ts';
import { openStormConnection } from './storm-connection.ts';
import type { Ledger } from './storm-ledger.ts';
import type { StormProcess } from './storm-process.ts';

export type LoadOptions = {
  readonly processes: readonly StormProcess[];
  readonly ledger: Ledger;
  readonly random: Random;
  /** The key of an administrator of the organization. */
  readonly key: string;
  readonly kills: number;
  readonly clients: number;
  /** Minimum and maximum number of responses between two kills. */
  readonly responsesBetweenKills: readonly [number, number];
  onKill?(nth: number, ledger: Ledger): void;
};

/** One in this many kills is repeated during the restart. */
const TWICE = 5;

/** Resolves after the last response, with the duration in milliseconds. */
export async function runLoad(options: LoadOptions): Promise<number> {
  const { processes, ledger, random, kills, onKill } = options;
  const [least, most] = options.responsesBetweenKills;
  const access = await openAccess(options);
  const counter = createResponseCounter();
  const stop = new AbortController();
  const startedMs = performance.now();
  const scope = { ledger, processes, random, onResponse: counter.count };
  const clients = access.map((own, i) =>
    runStormClient(scope, { name: `c${i}`, at: i % processes.length, access: own, signal: stop.signal }),
  );
  const ended = Promise.all(clients);
  for (let nth = 1; nth <= kills; nth += 1) {
    // The process that has just responded is killed: its response must hold, whatever it was still doing.
    const index = await Promise.race([counter.after(least + random(most - least)), ended.then(() => 0)]);
    await processes[index]?.kill(random(TWICE) === 0);
    onKill?.(nth, ledger);
  }
  await Promise.race([counter.after(most), ended]);
  stop.abort();
  await ended;
  return performance.now() - startedMs;
}

/** A sandbox with a token for each client. */
async function openAccess({ processes, key, clients }: LoadOptions): Promise<readonly StormAccess[]> {
  using connection = openStormConnection();
  const port = (await processes[0]?.port()) ?? 0;
  const access: StormAccess[] = [];
  for (let i = 0; i < clients; i += 1) {
    const sandbox = `storm-${i}`;
    const path = `/v1/sandboxes/${sandbox}/tokens`;
    const reply = await connection.ask(port, { method: 'POST', path, key, body: {} });
    if (reply.kind !== 'responded' || reply.status !== 201)
      throw new Error(`${path} got ${JSON.stringify(reply)}`);
    access.push({ key, sandbox, sandboxToken: (reply.body as { readonly token: string }).token });
  }
  return access;
}

/** `after` resolves after so many responses, with the index of the process that sent the last of them. */
function createResponseCounter(): { count(index: number): void; after(responses: number): Promise<number> } {
  let left = 0;
  let end: (index: number) => void = () => undefined;
  return {
    count(index) {
      left -= 1;
      if (left === 0) end(index);
    },
    after(responses) {
      left = responses;
      return new Promise((resolve) => (end = resolve));
    },
  };
}
