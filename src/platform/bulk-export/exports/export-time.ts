// Times of exports, as those of traces: ISO 8601 in UTC with microseconds. Pure.

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?$/i;

/** `2026-11-24T01:02:03.000004Z`, from a time as in RFC 3339, which is in UTC where it names no offset; undefined for another text. */
export function toCanonicalTime(text: string): string | undefined {
  const [, minute, second = '00', fraction = '', offset = 'Z'] = TIME.exec(text) ?? [];
  if (minute === undefined) return undefined;
  const ms = Date.parse(`${minute}:${second}${offset.toUpperCase()}`);
  if (!(ms >= 0 && ms < Date.UTC(9999, 0, 1))) return undefined;
  return `${new Date(ms).toISOString().slice(0, 19)}.${fraction.padEnd(6, '0').slice(0, 6)}Z`;
}

/** Microseconds since 1970 of a canonical time. */
export function microsOf(time: string): number {
  return Date.parse(`${time.slice(0, 19)}Z`) * 1000 + Number(time.slice(20, 26));
}

export function formatMicros(micros: number): string {
  const seconds = Math.floor(micros / 1e6);
  const fraction = String(micros - seconds * 1e6).padStart(6, '0');
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}
