import { describe, expect, it } from 'vitest';
import { columns, parseRowFilter, toRow } from '../../../src/admin/page/record-row.ts';

const record = {
  sandbox: 'agent-7',
  method: 'GET',
  authority: 'api.test:443',
  path: '/v1/models',
  rule: 'models',
  outcome: 'injected',
  status: 200,
  duration_ms: 12.345,
};

describe('a row', () => {
  it('has a text for each column, with the time in UTC', () => {
    const row = toRow(record, Date.UTC(2026, 0, 1, 12, 0, 0, 123));
    expect(row).toEqual([
      ...['success', '12:00:00.123', 'agent-7', 'GET', 'api.test:443', '/v1/models'],
      ...['models', 'injected', '200', '12.3 ms'],
    ]);
    expect(row).toHaveLength(columns.length + 1);
  });

  it.each([
    [{ sandbox: 'a', outcome: 'refused', reason: 'access_denied' }, 'error', 'refused: access_denied'],
    [{ sandbox: 'a', outcome: 'failed', reason: 'client_gone' }, 'error', 'failed: client_gone'],
    [{ sandbox: 'a', outcome: 'tunnelled' }, '', 'tunnelled'],
  ])('says why, where there is a reason: %j', (given, kind, outcome) => {
    const row = toRow(given, 0);
    expect([row[0], row[7]]).toEqual([kind, outcome]);
  });

  it('names the callback where no rule decides', () => {
    expect(toRow({ sandbox: 'a', callback: 'minter' }, 0)[6]).toBe('minter');
  });

  it('shows what is not seen by its number, and cuts a long text', () => {
    const [, , , , , path, rule] = toRow(
      { sandbox: 'a', path: `/${'x'.repeat(600)}`, rule: 'a\u202eb\u0000' },
      0,
    );
    expect(path).toBe(`/${'x'.repeat(199)}…`);
    expect(rule).toBe('a[U+202E]b[U+0000]');
  });
});

it.each([
  ['', true],
  ['   ', true],
  ['MODELS', true],
  ['api.test injected', true],
  ['injected 200 agent-7', true],
  ['models refused', false],
  ['.*', false],
  ['agent-7GET', false],
])('the filter %j finds the record: %s', (text, isFound) => {
  expect(parseRowFilter(text)(record)).toBe(isFound);
});
