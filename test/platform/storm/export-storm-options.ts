// What `npm run exports:storm` is asked for.
import { parseArgs } from 'node:util';

export type ExportStormOptions = { readonly kills: number; readonly rows: number; readonly seed: number };

/** Throws an Error that says which option is wrong and what it may be. */
export function parseExportStormOptions(args: readonly string[]): ExportStormOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kills: { type: 'string', default: '200' },
      rows: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    },
  });
  return {
    kills: toNumber('kills', values.kills, 0, 10_000),
    rows: toNumber('rows', values.rows, 1, 10_000),
    seed: toNumber('seed', values.seed, 0, 2 ** 31),
  };
}

function toNumber(name: string, text: string, min: number, max: number): number {
  const value = text === '' ? Number.NaN : Number(text);
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new Error(`--${name} must be from ${min} to ${max}`);
}
