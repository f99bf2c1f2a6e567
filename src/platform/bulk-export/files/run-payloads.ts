// The payloads of one run as JSON. All of them are held at once, so their bytes are limited together, and each is unpacked within what is
// left of the limit.
import { type PagedRun, type RunPages, RunTooLarge } from '../../traces/contract.ts';
import type { PayloadColumn } from './column-values.ts';
import { ExportFailure } from './export-failure.ts';

export type Unpacked = Readonly<Partial<Record<PayloadColumn, string | Buffer>>>;
/** Throws ExportFailure. */
export type UnpackPayloads = (run: PagedRun) => Unpacked | Promise<Unpacked>;

export type UnpackingOptions = {
  readonly fields: readonly PayloadColumn[];
  readonly unpack: RunPages['unpack'];
  /** Of the payloads of one run, without compression. */
  readonly maxBytes: number;
};

type Held = {
  readonly run: PagedRun;
  readonly unpacked: Partial<Record<PayloadColumn, string | Buffer>>;
  left: number;
};

/** Most payloads are unpacked at once: to wait for each of them would take longer than to write them. */
export function createUnpacking({ fields, unpack, maxBytes }: UnpackingOptions): UnpackPayloads {
  const unpackOne = (held: Held, field: PayloadColumn): void | Promise<void> => {
    const stored = held.run[field];
    if (stored === null || stored === undefined) return;
    const fail = (cause: unknown): never => {
      throw toFailure(cause, { id: held.run.id, field, maxBytes });
    };
    try {
      const json = typeof stored === 'string' ? stored : unpack(stored, Math.max(1, held.left));
      return json instanceof Promise
        ? json.then((bytes) => hold(held, field, bytes)).catch(fail)
        : hold(held, field, json);
    } catch (error) {
      return fail(error);
    }
  };
  const unpackFrom = (held: Held, first: number): Unpacked | Promise<Unpacked> => {
    for (let at = first; at < fields.length; at += 1) {
      const waiting = unpackOne(held, fields[at] as PayloadColumn);
      if (waiting !== undefined) return waiting.then(() => unpackFrom(held, at + 1));
    }
    return held.unpacked;
  };
  return (run) => unpackFrom({ run, unpacked: {}, left: maxBytes }, 0);
}

function hold(held: Held, field: PayloadColumn, json: string | Buffer): void {
  held.left -= json.length;
  if (held.left < 0) throw new RunTooLarge(held.run.id, field);
  held.unpacked[field] = json;
}

type Place = { readonly id: string; readonly field: string; readonly maxBytes: number };

function toFailure(cause: unknown, { id, field, maxBytes }: Place): ExportFailure {
  if (cause instanceof RangeError || cause instanceof RunTooLarge)
    return tooLarge({ id, field, maxBytes }, cause);
  const message = `The ${field} of the trace run ${id} cannot be read`;
  return new ExportFailure('serialization', message, { cause });
}

/** `field`: with which they have more than `maxBytes`. */
export function tooLarge({ id, field, maxBytes }: Place, cause: unknown): ExportFailure {
  const limit = `${Math.floor(maxBytes / 1024 / 1024)} MiB`;
  const message = `The values of the trace run ${id} have more than ${limit} with ${field}: export without this column (export_fields), or leave the run out (filter)`;
  return new ExportFailure('resources', message, { cause });
}
