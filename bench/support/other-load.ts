// How much of the cores was used by processes that are not of this benchmark, from round to round: a machine that becomes busy
// after the start of a run makes its figures larger too.
import { readFileSync, readdirSync } from 'node:fs';
import { statFields } from './children.ts';

export type OtherLoad = {
  /** Of all cores, over all rounds, and in the busiest round. */
  readonly percent: number;
  readonly most_percent: number;
};

export type OtherLoadWatch = { sample(): void; result(): OtherLoad };

type Ticks = { readonly all: number; readonly used: number; readonly ours: number };

const BUSY_PERCENT = 10;
const BUSY_ROUND_PERCENT = 25;
/** Ticks are counted in hundredths of a second: a share of a shorter time would be noise. */
const FEWEST_TICKS = 50;

export function watchOtherLoad(read: () => Ticks = readTicks): OtherLoadWatch {
  const first = read();
  let last = first;
  let most = 0;
  return {
    sample() {
      const now = read();
      if (now.all - last.all < FEWEST_TICKS) return;
      most = Math.max(most, percentBetween(last, now));
      last = now;
    },
    result() {
      const percent = percentBetween(first, read());
      return { percent: Math.round(percent), most_percent: Math.round(Math.max(percent, most)) };
    },
  };
}

export function otherLoadWarnings({ percent, most_percent }: OtherLoad): readonly string[] {
  if (percent <= BUSY_PERCENT && most_percent <= BUSY_ROUND_PERCENT) return [];
  return [
    `other processes used ${percent} % of the cores during the run, ${most_percent} % in the busiest round; figures are larger and vary more`,
  ];
}

function percentBetween(from: Ticks, to: Ticks): number {
  const all = to.all - from.all;
  const others = to.used - from.used - (to.ours - from.ours);
  return all <= 0 ? 0 : Math.max((others / all) * 100, 0);
}

function readTicks(): Ticks {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const times = line.split(/ +/).slice(1, 9).map(Number);
  // Interrupts belong to nobody: those of loopback connections are the benchmark's own.
  const [user = 0, nice = 0, system = 0, , , , , stolen = 0] = times;
  return {
    all: times.reduce((sum, each) => sum + each, 0),
    used: user + nice + system + stolen,
    ours: ownTicks(),
  };
}

/** This process and all below it. The time of one that ended is counted with its parent. */
function ownTicks(): number {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  const stats = new Map(pids.map((pid) => [pid, statFields(Number(pid)) ?? []]));
  const below = Map.groupBy(stats.keys(), (pid) => stats.get(pid)?.[1] ?? '');
  const ticksOf = (pid: string): number => {
    const own = stats.get(pid)?.slice(11, 15) ?? [];
    const children = below.get(pid) ?? [];
    return (
      own.reduce((sum, each) => sum + Number(each), 0) +
      children.reduce((sum, each) => sum + ticksOf(each), 0)
    );
  };
  return ticksOf(String(process.pid));
}
