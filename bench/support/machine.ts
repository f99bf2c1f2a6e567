// The machine of a run: what it is, and how busy it is with other things. A busy machine makes figures larger and ratios
// less certain, so that it is measured before every run.
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

export type Machine = {
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gb: number;
  readonly system: string;
  /** Whether the proxy and the load client have a core of their own. */
  readonly pinned: boolean;
  /** The share of all cores that was used, or taken by the hypervisor, in the moment before the run. */
  readonly busy_percent: number;
  readonly load_average: readonly number[];
};

const SAMPLE_MS = 400;
const BUSY_PERCENT = 15;

export async function inspectMachine(pinned: boolean): Promise<Machine> {
  const before = readTimes();
  await delay(SAMPLE_MS);
  const after = readTimes();
  const all = after.all - before.all;
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memory_gb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    pinned,
    busy_percent: all === 0 ? 0 : Math.round((1 - (after.idle - before.idle) / all) * 100),
    load_average: loadavg().map((each) => Math.round(each * 100) / 100),
  };
}

/** What to know before the figures are believed. */
export function warningsOf({ busy_percent, pinned }: Machine): readonly string[] {
  const busy = `the machine is busy: ${busy_percent} % of its cores were used before the run; figures are larger and vary more`;
  const free = 'not pinned to cores (taskset is missing, or there is one core): figures vary more';
  return [...(busy_percent > BUSY_PERCENT ? [busy] : []), ...(pinned ? [] : [free])];
}

/** Ticks of all cores since the start of the system. */
function readTimes(): { readonly all: number; readonly idle: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const times = line.split(/ +/).slice(1, 9).map(Number);
  const [, , , idle = 0, waiting = 0] = times;
  return { all: times.reduce((sum, each) => sum + each, 0), idle: idle + waiting };
}
