// The record of an exchange as a row of the page. Pure.
import { visiblePlainText } from '../../base/html/visible-text.ts';
import type { LiveRecord } from '../target.ts';

export const columns = [
  'Time',
  'Sandbox',
  'Method',
  'Host',
  'Path',
  'Rule',
  'Outcome',
  'Status',
  'Latency',
] as const;

/** A class of the style for the outcome, then a text for each column. */
export type RecordRow = readonly [kind: 'error' | 'success' | '', ...texts: string[]];

const MAX_CHARS = 200;

/** `endedMs`: since the epoch. Times are UTC, as in the log. */
export function toRow(record: LiveRecord, endedMs: number): RecordRow {
  const { sandbox, method, authority, path, rule, callback, outcome, reason, status, duration_ms } = record;
  return [
    kindOf(outcome),
    new Date(endedMs).toISOString().slice(11, 23),
    shown(sandbox),
    shown(method),
    shown(authority),
    shown(path),
    shown(rule ?? callback),
    shown(reason === undefined ? outcome : `${outcome}: ${reason}`),
    status === undefined ? '' : String(status),
    duration_ms === undefined ? '' : `${duration_ms.toFixed(1)} ms`,
  ];
}

function kindOf(outcome: string | undefined): RecordRow[0] {
  if (outcome === 'refused' || outcome === 'failed') return 'error';
  return outcome === 'injected' ? 'success' : '';
}

function shown(text: string | undefined): string {
  return text === undefined ? '' : visiblePlainText(text, MAX_CHARS);
}

export type RowFilter = (record: LiveRecord) => boolean;

const MAX_FILTER_CHARS = 256;

/** Each word must be a part of something that the row shows, in whatever letter case. */
export function parseRowFilter(text: string): RowFilter {
  const words = text.slice(0, MAX_FILTER_CHARS).toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return () => true;
  return (record) => {
    const all = textOf(record).toLowerCase();
    return words.every((word) => all.includes(word));
  };
}

function textOf(record: LiveRecord): string {
  const { sandbox, method, authority, path, rule, callback, outcome, reason, status } = record;
  return [sandbox, method, authority, path, rule, callback, outcome, reason, status].join('\n');
}
