// Clients that write through places, and one place after the other that is killed at a random moment of it.
import type { Random } from '../../http1/mutation.ts';
import { runStormClient, type StormAccess } from './storm-client.ts';
import { openStormConnection } from './storm-connection.ts';
import type { Ledger } from './storm-ledger.ts';
import type { StormPlace } from './storm-place.ts';

export type LoadOptions = {
  readonly places: readonly StormPlace[];
  readonly ledger: Ledger;
  readonly random: Random;
  /** Of an administrator of the organization. */
  readonly key: string;
  readonly kills: number;
  readonly clients: number;
  /** Answers between one kill and the next, at least and at most. */
  readonly calm: readonly [number, number];
  onKill?(nth: number, ledger: Ledger): void;
};

/** One kill in so many is repeated on the way up. */
const TWICE = 5;

/** Resolves with the time that it took when the last answer has come. */
export async function runLoad(options: LoadOptions): Promise<number> {
  const { places, ledger, random, kills, onKill } = options;
  const [least, most] = options.calm;
  const access = await openAccess(options);
  const calm = createCalm();
  const stop = new AbortController();
  const startedMs = performance.now();
  const scope = { ledger, places, random, onResponse: calm.count };
  const clients = access.map((own, i) =>
    runStormClient(scope, { name: `c${i}`, place: i % places.length, access: own, signal: stop.signal }),
  );
  const ended = Promise.all(clients);
  for (let nth = 1; nth <= kills; nth += 1) {
    // Whoever has just answered dies of it: what it said has to hold, whatever it would still have done.
    const place = await Promise.race([calm.after(least + random(most - least)), ended.then(() => 0)]);
    await places[place]?.kill(random(TWICE) === 0);
    onKill?.(nth, ledger);
  }
  await Promise.race([calm.after(most), ended]);
  stop.abort();
  await ended;
  return performance.now() - startedMs;
}

/** A sandbox with a token for each client. */
async function openAccess({ places, key, clients }: LoadOptions): Promise<readonly StormAccess[]> {
  using connection = openStormConnection();
  const port = (await places[0]?.whereabouts()) ?? 0;
  const made: StormAccess[] = [];
  for (let i = 0; i < clients; i += 1) {
    const sandbox = `storm-${i}`;
    const path = `/v1/sandboxes/${sandbox}/tokens`;
    const reply = await connection.ask(port, { method: 'POST', path, key, body: {} });
    if (reply.kind !== 'responded' || reply.status !== 201)
      throw new Error(`${path} answered ${JSON.stringify(reply)}`);
    made.push({ key, sandbox, sandboxToken: (reply.body as { readonly token: string }).token });
  }
  return made;
}

/** Resolves after so many answers, with the place that gave the last of them. */
function createCalm(): { count(place: number): void; after(responses: number): Promise<number> } {
  let left = 0;
  let end: (place: number) => void = () => undefined;
  return {
    count(place) {
      left -= 1;
      if (left === 0) end(place);
    },
    after(responses) {
      left = responses;
      return new Promise((resolve) => (end = resolve));
    },
  };
}
