// Which records somebody wants to follow, from the parameters of a query. Pure.
import { type Issue, type Parsed, toLocKey } from '../../base/schema.ts';
import type { LiveRecord } from '../target.ts';

export type RecordFilter = (record: LiveRecord) => boolean;

const MAX_VALUE_CHARS = 256;
const STATUS = /^[1-5](?:\d\d|xx)$/;

type Test = { readonly test: RecordFilter } | { readonly msg: string };

/** For each parameter what it matches, or what is wrong with its value. */
const PARAMETERS: Readonly<Record<string, (value: string, outcomes: readonly string[]) => Test>> = {
  host: (glob) => ({ test: ({ authority }) => authority !== undefined && isHost(authority, glob) }),
  rule: (name) => ({ test: ({ rule }) => rule === name }),
  callback: (name) => ({ test: ({ callback }) => callback === name }),
  sandbox: (id) => ({ test: ({ sandbox }) => sandbox === id }),
  outcome: (value, outcomes) =>
    outcomes.includes(value)
      ? { test: ({ outcome }) => outcome === value }
      : { msg: `Input should be one of ${outcomes.join(', ')}` },
  status: (value) =>
    STATUS.test(value)
      ? { test: ({ status }) => status !== undefined && isStatus(status, value) }
      : { msg: 'Input should be a status, as 403, or a class of them, as 4xx' },
  refused: (value) =>
    value === 'true'
      ? { test: ({ outcome }) => outcome === 'refused' || outcome === 'failed' }
      : { msg: 'Input should be true: only what was refused or failed' },
};

/** The parameters of the query. */
export const filterNames: readonly string[] = Object.keys(PARAMETERS);

/** A record must match every parameter. The keys of `query` are among `filterNames`. */
export function parseRecordFilter(
  query: ReadonlyMap<string, string>,
  outcomes: readonly string[],
): Parsed<RecordFilter> {
  const issues: Issue[] = [];
  const tests: RecordFilter[] = [];
  for (const [name, value] of query) {
    const parsed = isUsable(value) ? PARAMETERS[name]?.(value, outcomes) : UNUSABLE;
    if (parsed !== undefined && 'test' in parsed) tests.push(parsed.test);
    else if (parsed !== undefined)
      issues.push({ loc: ['query', toLocKey(name)], msg: parsed.msg, type: 'value_error' });
  }
  if (issues.length > 0) return { ok: false, issues };
  return { ok: true, value: (record) => tests.every((test) => test(record)) };
}

const UNUSABLE = { msg: `Input should have 1 to ${MAX_VALUE_CHARS} characters` };

function isUsable(value: string): boolean {
  return value !== '' && value.length <= MAX_VALUE_CHARS;
}

function isStatus(status: number, wanted: string): boolean {
  return wanted.endsWith('xx') ? Math.floor(status / 100) === Number(wanted[0]) : status === Number(wanted);
}

/** With and without the port; `*` is any number of characters, also dots. */
function isHost(authority: string, glob: string): boolean {
  const wanted = glob.toLowerCase();
  return isMatch(authority, wanted) || isMatch(authority.replace(/:\d+$/, ''), wanted);
}

/** Not by a regular expression, whose time a glob could make grow with every star. */
function isMatch(text: string, glob: string): boolean {
  const [start = '', ...parts] = glob.split('*');
  const end = parts.pop();
  if (end === undefined) return text === glob;
  if (text.length < start.length + end.length || !text.startsWith(start) || !text.endsWith(end)) return false;
  let at = start.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > text.length - end.length) return false;
    at = found + part.length;
  }
  return true;
}
