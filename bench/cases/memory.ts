// Does the memory grow? Ten minutes of requests at a constant rate on kept-alive connections, and new tunnels between them.
import type { Question } from '../support/question.ts';
import type { Run } from '../support/round.ts';

const ROUNDS = 60;
const ROUND_MS = 10_000;
const RATE_PER_SECOND = 2_000;
const TUNNELS = 200;

export const memory: Question = {
  name: 'memory',
  title: `Memory over ${(ROUNDS * ROUND_MS) / 60_000} minutes`,
  loads: { memory: `${RATE_PER_SECOND} requests/s on 32 connections, and ${TUNNELS} new tunnels every 10 s` },
  columns: [
    { figure: 'rss_mb', title: 'RSS MB', digits: 0 },
    { figure: 'p99_ms', title: 'p99 ms', digits: 2 },
  ],
  async measure(stage) {
    const { client, effort, subjects } = stage;
    const subject = subjects.find(({ name }) => name === 'rule');
    if (subject === undefined) return { series: [] };
    const isTiny = effort.level === 'tiny';
    const load = {
      clients: 32,
      settleMs: 0,
      durationMs: isTiny ? 50 : ROUND_MS,
      ratePerSecond: RATE_PER_SECOND,
    };
    const run: Run = {
      load: 'memory',
      subject: subject.name,
      async measure() {
        await client.shortLived(subject, { lanes: 8, durationMs: ROUND_MS, count: isTiny ? 8 : TUNNELS });
        return client.keepAlive(subject, load);
      },
    };
    const series = await stage.measure([run], { rounds: isTiny ? 3 : ROUNDS });
    const sizes = series[0]?.rounds.flatMap(({ rss_mb }) => rss_mb ?? []) ?? [];
    const note = `after the first ${ROUND_MS / 1000} s ${sizes[0]?.toFixed(1)} MB, at the end ${sizes.at(-1)?.toFixed(1)} MB`;
    return { series, notes: [note] };
  },
};
