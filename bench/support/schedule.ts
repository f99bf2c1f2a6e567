// The order of the loads and their cases: HTTP/1.1 in closed loops, then at a constant rate that is derived from them;
// HTTP/2 in closed loops. measure.ts measures a round.
import type { BenchCase, Load, LoadName, Plan, Protocol } from './cases.ts';
import { type LoadClient, type Samples, joinSamples, measureRounds } from './measure.ts';
import { spreadOf } from './percentiles.ts';

export type Schedule = {
  readonly plan: Plan;
  readonly cases: readonly BenchCase[];
  readonly startedMs: number;
  say(line: string): void;
  /** Called after all cases of a round. */
  onRound(): void;
};

export async function measureH1(
  client: LoadClient,
  schedule: Schedule,
): Promise<{ readonly samples: Samples; readonly ratePerSecond: number }> {
  const { clients, rounds, lastRoundMs } = schedule.plan;
  const one = loadOf(schedule, 'h1_1', { clients: 1 });
  const many = loadOf(schedule, 'h1_32', { clients });
  await warmUp(client, schedule, 'h1', many);
  const turns = { protocol: 'h1', rounds } as const;
  const closed = await measureTurns(client, schedule, {
    ...turns,
    loads: [one, many],
    lastMs: lastRoundMs.closed,
  });
  const ratePerSecond = Math.floor(slowestOf(closed) / 2);
  const constant = loadOf(schedule, 'rate', { clients, ratePerSecond });
  const paced = await measureTurns(client, schedule, {
    ...turns,
    loads: [constant],
    lastMs: lastRoundMs.rate,
  });
  return { samples: joinSamples(closed, paced), ratePerSecond };
}

export async function measureH2(client: LoadClient, schedule: Schedule): Promise<Samples> {
  const few = loadOf(schedule, 'h2_4x8', { clients: 4, streams: 8 });
  const full = loadOf(schedule, 'h2_4x100', { clients: 4, streams: 100 });
  await warmUp(client, schedule, 'h2', few);
  const { h2Rounds: rounds, lastRoundMs } = schedule.plan;
  const loads = [few, full];
  return measureTurns(client, schedule, { protocol: 'h2', rounds, loads, lastMs: lastRoundMs.h2 });
}

function loadOf({ plan }: Schedule, name: LoadName, how: Omit<Load, 'name' | 'durationMs'>): Load {
  return { name, durationMs: plan.durationMs[name], ...how };
}

function under({ cases }: Schedule, protocol: Protocol): readonly BenchCase[] {
  return cases.filter(({ protocols }) => protocols.includes(protocol));
}

async function warmUp(client: LoadClient, schedule: Schedule, protocol: Protocol, load: Load): Promise<void> {
  schedule.say(`warming up ${load.name}`);
  const { warmUpMs, h2WarmUpMs } = schedule.plan;
  const durationMs = protocol === 'h1' ? warmUpMs : h2WarmUpMs;
  for (const subject of under(schedule, protocol)) await client.measure(subject, { ...load, durationMs }, 0);
}

function measureTurns(
  client: LoadClient,
  schedule: Schedule,
  turns: {
    readonly protocol: Protocol;
    readonly loads: readonly Load[];
    readonly rounds: number;
    readonly lastMs: number;
  },
): Promise<Samples> {
  const { protocol, rounds, loads, lastMs } = turns;
  const { plan, startedMs, say, onRound } = schedule;
  return measureRounds(client, under(schedule, protocol), loads, {
    rounds,
    lastRoundMs: startedMs + lastMs,
    settleMs: plan.settleMs,
    onRound(round) {
      onRound();
      say(`${loads.map(({ name }) => name).join(' and ')}: round ${round} of ${rounds}`);
    },
  });
}

function slowestOf(closed: Samples): number {
  const capacities = [...closed.values()].map((byLoad) => {
    const list = byLoad.get('h1_32') ?? [];
    return spreadOf(list.map(({ perSecond }) => perSecond)).median;
  });
  return Math.min(...capacities);
}
