// The loads that both servers get, in rounds: in each one the public server is measured first.
import type { RunClients } from './run-clients.ts';
import type { AgentServer } from './servers.ts';

export const CLIENTS = 16;
export const EVENTS = 10_000;

export type Side = 'peer' | 'sallyport';
export const sides: readonly Side[] = ['peer', 'sallyport'];

export type BySide<T> = Readonly<Record<Side, T>>;

export type Effort = { readonly rounds: number; readonly warmUpSeconds: number; readonly seconds: number };

/** Of one side. */
export type Loads = {
  /** Milliseconds to the first event that a node caused, of all rounds. */
  readonly firstEvent: readonly number[];
  /** Of each round. */
  readonly runsPerSecond: readonly number[];
  /** Of one stream at a time. */
  readonly eventsPerSecond: readonly number[];
  /** Of 16 streams at once. */
  readonly eventsPerSecondTogether: readonly number[];
};

type Growing = { readonly [K in keyof Loads]: number[] };

const nothing = (): Growing => ({
  firstEvent: [],
  runsPerSecond: [],
  eventsPerSecond: [],
  eventsPerSecondTogether: [],
});

export async function warmUp(clients: RunClients, { url }: AgentServer, { warmUpSeconds }: Effort) {
  await clients({ kind: 'first-event', url, clients: CLIENTS, seconds: warmUpSeconds });
  await clients({ kind: 'wait', url, clients: CLIENTS, seconds: warmUpSeconds / 2 });
  await clients({ kind: 'events', url, clients: 1, events: EVENTS });
}

export async function measureLoads(
  clients: RunClients,
  servers: BySide<AgentServer>,
  { rounds, seconds }: Effort,
  onRound: () => void,
): Promise<BySide<Loads>> {
  const loads: BySide<Growing> = { peer: nothing(), sallyport: nothing() };
  for (let round = 0; round < rounds; round += 1) {
    for (const side of sides) {
      const { url } = servers[side];
      const { samples } = await clients({ kind: 'first-event', url, clients: CLIENTS, seconds });
      loads[side].firstEvent.push(...samples);
    }
    for (const side of sides) {
      const { url } = servers[side];
      const { count, seconds: took } = await clients({ kind: 'wait', url, clients: CLIENTS, seconds });
      loads[side].runsPerSecond.push(count / took);
    }
    for (const side of sides) loads[side].eventsPerSecond.push(await readEvents(clients, servers[side], 1));
    for (const side of sides)
      loads[side].eventsPerSecondTogether.push(await readEvents(clients, servers[side], CLIENTS));
    onRound();
  }
  return loads;
}

/** Events a second of streams at once, from the first request to the end of the last stream. */
async function readEvents(clients: RunClients, { url }: AgentServer, streams: number): Promise<number> {
  const { samples } = await clients({ kind: 'events', url, clients: streams, events: EVENTS });
  return (streams * EVENTS * 1000) / Math.max(...samples);
}
