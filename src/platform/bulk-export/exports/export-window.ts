// The windows of exports: half-open, cut into UTC days, with a run for each. Pure.
import { formatMicros, microsOf } from './export-time.ts';

export type ExportWindow = { readonly from: string; readonly to: string };

export const MAX_WINDOW_DAYS = 400;
const DAY_MICROS = 24 * 3_600 * 1e6;
const HOUR_MICROS = 3_600 * 1e6;

export function isTooLong({ from, to }: ExportWindow): boolean {
  return microsOf(to) - microsOf(from) > MAX_WINDOW_DAYS * DAY_MICROS;
}

/** Each UTC day of the window, or the part of it that is in the window. */
export function daysOf({ from, to }: ExportWindow): readonly ExportWindow[] {
  const [first, end] = [microsOf(from), microsOf(to)];
  const days: ExportWindow[] = [];
  for (let at = first; at < end; ) {
    const next = Math.min(end, (Math.floor(at / DAY_MICROS) + 1) * DAY_MICROS);
    days.push({ from: formatMicros(at), to: formatMicros(next) });
    at = next;
  }
  return days;
}

/** Of the export that a schedule makes next. */
export function intervalFrom(from: string, hours: number): ExportWindow {
  return { from, to: formatMicros(microsOf(from) + hours * HOUR_MICROS) };
}

/** Runs of the last minutes of a window may come late. */
const SETTLE_MS = 10 * 60_000;

/** When a schedule makes the export of the window. */
export function dueAt({ to }: ExportWindow): Date {
  return new Date(Math.ceil(microsOf(to) / 1000) + SETTLE_MS);
}
