// What `npm run traces:storm` is asked for.
import { parseArgs } from 'node:util';

export type TraceStormOptions = { readonly kills: number; readonly clients: number; readonly seed: number };

/** Throws an Error that says which option is wrong and what it may be. */
export function parseTraceStormOptions(args: readonly string[]): TraceStormOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kills: { type: 'string', default: '50' },
      clients: { type: 'string', default: '8' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    },
  });
  return {
    kills: toNumber('kills', values.kills, 0, 10_000),
    clients: toNumber('clients', values.clients, 1, 100),
    seed: toNumber('seed', values.seed, 0, 2 ** 31),
  };
}

function toNumber(name: string, text: string, min: number, max: number): number {
  const value = text === '' ? Number.NaN : Number(text);
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new Error(`--${name} must be from ${min} to ${max}`);
}
