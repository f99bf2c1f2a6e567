// What does a client that lives for one request wait, when the origin is 0, 20 or 80 ms away? Directly it pays the distance
// three times: TCP, TLS, the request. A proxy that keeps its upstream connections pays it once.
import { join } from 'node:path';
import type { DistanceResponse } from '../support/distance.ts';
import { percentilesOf } from '../support/percentiles.ts';
import { type Question, type Stage, warmUp } from '../support/question.ts';
import type { Run } from '../support/round.ts';
import { LOAD_CORE } from '../support/scene.ts';
import type { Subject } from '../support/subject.ts';

const ROUND_TRIPS_MS = [0, 20, 80] as const;
/** Clients of one round: enough for a median, few enough for 80 ms. */
const CLIENTS = 9;

export const shortLived: Question = {
  name: 'short-lived',
  title: 'A client of one request, with an origin that is far away',
  loads: {
    away_0: 'the origin without distance',
    away_20: 'the origin 20 ms away, upstream connections warm',
    away_80: 'the origin 80 ms away, upstream connections warm',
  },
  columns: [
    { figure: 'p50_ms', title: 'p50 ms', digits: 2 },
    { figure: 'p99_ms', title: 'slowest ms', digits: 2 },
    { figure: 'upstream_connects', title: 'upstream connects', digits: 2 },
  ],
  async measure(stage) {
    // A reverse proxy asks the origin of its configuration, which is not the one behind the distance.
    const subjects = stage.subjects.filter(
      ({ isForward, protocols }) => isForward && protocols.includes('h1'),
    );
    const runs: Run[] = [];
    const relays: { readonly name: string; lateness(): Promise<string> }[] = [];
    for (const roundTripMs of ROUND_TRIPS_MS) {
      const distance = await startDistance(stage, roundTripMs);
      relays.push({ name: `${roundTripMs} ms`, lateness: distance.lateness });
      for (const subject of subjects)
        runs.push(
          runOf(
            stage,
            subject,
            `away_${roundTripMs}`,
            roundTripMs === 0 ? stage.scene.originPort : distance.port,
          ),
        );
    }
    // The first client of a proxy pays for its upstream connection.
    await warmUp(runs);
    const series = await stage.measure(runs);
    const late = await Promise.all(relays.map(async ({ name, lateness }) => `${name}: ${await lateness()}`));
    return {
      series,
      notes: [`later than due by the relay of the distance, for each delay: ${late.join('; ')}`],
    };
  },
};

function runOf({ client }: Stage, subject: Subject, load: string, port: number): Run {
  const shape = { lanes: 1, durationMs: 60_000, count: CLIENTS };
  return {
    load,
    subject: subject.name,
    measure: () => client.shortLived(subject, shape, [subject.target(port)]),
  };
}

type Distance = { readonly port: number; lateness(): Promise<string> };

async function startDistance({ children, scene }: Stage, roundTripMs: number): Promise<Distance> {
  const program = join(import.meta.dirname, '..', 'support', 'distance.ts');
  const child = children.start(`distance-${roundTripMs}`, [process.execPath, program], {
    core: LOAD_CORE,
    output: 'ipc',
  });
  const { port } = (await child.ask({ originPort: scene.originPort, roundTripMs })) as { port: number };
  return {
    port,
    async lateness() {
      const response = (await child.ask('lateness')) as DistanceResponse;
      await child.stop();
      if (!('lateMs' in response) || response.lateMs.length === 0) return 'not used';
      const { p50, p99, max } = percentilesOf([response.lateMs]);
      return `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, at most ${max.toFixed(2)} ms`;
    },
  };
}
