// Times of runs: ISO 8601 with any number of digits, or milliseconds since 1970, to UTC with microseconds. And `dotted_order`, which says
// where a run is in its trace. Pure.

/** `2026-11-24T01:02:03.000004Z`; undefined for what is no time from 1970 to 9999. */
export function toMicroseconds(value: unknown): string | undefined {
  if (typeof value === 'number') return fromMilliseconds(value);
  if (typeof value !== 'string' || value.length > 64) return undefined;
  const match = ISO.exec(value);
  if (match === null) return undefined;
  const [, date, time, seconds = ':00', fraction = '', offset = 'Z'] = match;
  const ms = Date.parse(`${date}T${time}${seconds}${offset.toUpperCase()}`);
  return inRange(ms) ? withFraction(ms, fraction.padEnd(6, '0').slice(0, 6)) : undefined;
}

const ISO = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,30}))?([Zz]|[+-]\d\d:?\d\d)?$/;

function fromMilliseconds(ms: number): string | undefined {
  const seconds = Math.floor(ms / 1000) * 1000;
  if (!inRange(ms)) return undefined;
  const micros = Math.min(999_999, Math.round((ms - seconds) * 1000));
  return withFraction(seconds, String(micros).padStart(6, '0'));
}

/** Of the year 9999. */
export const LAST_MS: number = Date.UTC(10_000, 0, 1) - 1;

function inRange(ms: number): boolean {
  return ms >= 0 && ms < LAST_MS + 1;
}

/** `ms` is of a whole second. */
function withFraction(ms: number, micros: string): string {
  return `${new Date(ms).toISOString().slice(0, 19)}.${micros}Z`;
}

/** Microseconds since 1970, which may be before. */
export function formatMicros(micros: number): string {
  const seconds = Math.floor(micros / 1e6);
  return withFraction(seconds * 1000, String(micros - seconds * 1e6).padStart(6, '0'));
}

export type Lineage = {
  readonly start_time: string;
  readonly trace_id: string;
  readonly parent_run_id: string | null;
  readonly parent_run_ids: readonly string[];
  /** As it was sent, with ids in lower case. */
  readonly dotted_order: string;
  readonly id: string;
};

const SEGMENT =
  /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{6})Z([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$/;
/** Deeper traces have a `dotted_order` of more than 56 KiB, in each of their runs. */
const MAX_SEGMENTS = 1_000;
const SEGMENT_CHARS = 60;

const ONE = String.raw`\d{8}T\d{12}Z[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`;
/** As the documentation has it. */
export const ORDER_PATTERN: string = `^${ONE}(?:\\.${ONE}){0,${MAX_SEGMENTS - 1}}$`;

/** Undefined for a text that is no such order. */
export function parseDottedOrder(text: string): Lineage | undefined {
  if (text.length > MAX_SEGMENTS * SEGMENT_CHARS) return undefined;
  const segments = text.split('.').map((segment) => SEGMENT.exec(segment));
  const ids: string[] = [];
  for (const segment of segments) {
    if (segment === null) return undefined;
    ids.push((segment[8] ?? '').toLowerCase());
  }
  const [, year, month, day, hour, minute, second, micros] = segments.at(-1) ?? [];
  const start_time = toMicroseconds(`${year}-${month}-${day}T${hour}:${minute}:${second}.${micros}Z`);
  const [id = '', trace_id = ''] = [ids.at(-1), ids[0]];
  if (start_time === undefined) return undefined;
  const parent_run_ids = ids.slice(0, -1);
  const dotted_order = text.replaceAll(/[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}/g, (one) =>
    one.toLowerCase(),
  );
  return {
    id,
    trace_id,
    parent_run_id: parent_run_ids.at(-1) ?? null,
    parent_run_ids,
    start_time,
    dotted_order,
  };
}

/** The segment of a run that has sent none. */
export function formatSegment(startTime: string, id: string): string {
  return `${startTime.replaceAll(/[-:.]/g, '')}${id}`;
}
