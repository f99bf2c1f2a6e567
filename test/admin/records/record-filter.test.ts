import { describe, expect, it } from 'vitest';
import { parseRecordFilter } from '../../../src/admin/records/record-filter.ts';

const OUTCOMES = ['injected', 'refused', 'failed'];
const record = {
  ...{ sandbox: 'agent-7', authority: 'api.eu.example.com:443', rule: 'api', callback: undefined },
  ...{ outcome: 'refused', status: 403 },
};

const isWanted = (query: Readonly<Record<string, string>>): boolean => {
  const parsed = parseRecordFilter(new Map(Object.entries(query)), OUTCOMES);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value(record);
};

describe('a record is wanted', () => {
  it.each([
    ['without a filter', {}],
    ['by its host', { host: 'api.eu.example.com' }],
    ['by its host in capitals', { host: 'API.EU.example.com' }],
    ['by its host and port', { host: 'api.eu.example.com:443' }],
    ['by a glob of its host', { host: '*.example.com' }],
    ['by a glob in the middle', { host: 'api.*.com' }],
    ['by a glob of any port', { host: '*.com:*' }],
    ['by several stars', { host: '*.eu.*mple*' }],
    ['by a star alone', { host: '*' }],
    ['by its rule', { rule: 'api' }],
    ['by its sandbox', { sandbox: 'agent-7' }],
    ['by its status', { status: '403' }],
    ['by the class of its status', { status: '4xx' }],
    ['by its outcome', { outcome: 'refused' }],
    ['as one that was refused', { refused: 'true' }],
    ['by all of them', { host: 'api*', rule: 'api', status: '4xx', refused: 'true' }],
  ] as const)('%s', (_, query) => expect(isWanted(query)).toBe(true));

  it.each([
    ['of another host', { host: 'example.com' }],
    ['of another port', { host: 'api.eu.example.com:8443' }],
    ['of a glob whose parts would overlap', { host: 'api.eu.example.*.example.com' }],
    ['of a glob whose end is missing', { host: '*.example.co' }],
    ['of another rule', { rule: 'ap' }],
    ['of a callback', { callback: 'api' }],
    ['of another sandbox', { sandbox: 'default' }],
    ['of another status', { status: '404' }],
    ['of another class', { status: '5xx' }],
    ['where one of two does not match', { host: '*.example.com', rule: 'other' }],
  ] as const)('%s: not', (_, query) => expect(isWanted(query)).toBe(false));

  it('of nothing but stars takes no longer for each of them', () => {
    const startedMs = performance.now();
    for (let i = 0; i < 1_000; i += 1) expect(isWanted({ host: `${'*a'.repeat(100)}*b` })).toBe(false);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });
});

describe('a filter is rejected with what it should be', () => {
  it.each([
    ['status', '40', 'Input should be a status, as 403, or a class of them, as 4xx'],
    ['status', '600', 'Input should be a status, as 403, or a class of them, as 4xx'],
    ['outcome', 'denied', 'Input should be one of injected, refused, failed'],
    ['refused', 'yes', 'Input should be true: only what was refused or failed'],
    ['host', '', 'Input should have 1 to 256 characters'],
    ['rule', 'x'.repeat(257), 'Input should have 1 to 256 characters'],
  ])('%s=%s', (name, value, msg) => {
    expect(parseRecordFilter(new Map([[name, value]]), OUTCOMES)).toEqual({
      ok: false,
      issues: [{ loc: ['query', name], msg, type: 'value_error' }],
    });
  });
});
