// What `npm run sandbox:storm` is asked for.
import { parseArgs } from 'node:util';

export type BoxStormOptions = {
  /** Of each round; 0: none. */
  readonly boxes: number;
  /** How many requests wait at a time, in each round. */
  readonly loads: readonly number[];
  readonly kills: number;
  readonly seed: number;
  readonly runtime: 'auto' | 'attached' | 'bubblewrap';
};

const RUNTIMES = ['auto', 'attached', 'bubblewrap'] as const;

/** Throws an Error that says which option is wrong and what it may be. */
export function parseBoxStormOptions(args: readonly string[]): BoxStormOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      boxes: { type: 'string' },
      loads: { type: 'string', default: '2,20' },
      kills: { type: 'string', default: '0' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      runtime: { type: 'string', default: 'auto' },
    },
  });
  const runtime = RUNTIMES.find((one) => one === values.runtime);
  if (runtime === undefined) throw new Error(`--runtime must be ${RUNTIMES.join(', ')}`);
  const kills = toNumber('kills', values.kills, 0, 10_000);
  return {
    // The mode with kills measures nothing unless it is asked to.
    boxes: toNumber('boxes', values.boxes ?? (kills > 0 ? '0' : '100'), 0, 1_000),
    loads: values.loads.split(',').map((text) => toNumber('loads', text, 1, 100)),
    kills,
    seed: toNumber('seed', values.seed, 0, 2 ** 31),
    runtime,
  };
}

function toNumber(name: string, text: string, min: number, max: number): number {
  const value = text === '' ? Number.NaN : Number(text);
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new Error(`--${name} must be from ${min} to ${max}`);
}
