// What a run of a named statement sends, what it makes of the messages that come, and when a statement is prepared again.
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type NamedStatement,
  StatementQuery,
  type StatementRun,
  type StatementSession,
} from '../../../../src/platform/store/pool/statement-query.ts';
import type { GroupResult } from '../../../../src/platform/store/pool/statement-group.ts';

const FIELDS = [
  { name: 'id', dataTypeID: 1 },
  { name: 'size', dataTypeID: 2 },
];

let session: StatementSession;
let outcome: { readonly error: unknown; readonly results: readonly GroupResult[] } | undefined;
beforeEach(() => {
  outcome = undefined;
  const size = (text: string): number => JSON.parse(text);
  session = { prepared: new Map(), findParser: (type) => (type === 2 ? size : String) };
});

/** Starts a run; returns it, and the types of the messages that it sends. */
function start(given: Partial<StatementRun & NamedStatement> = {}) {
  const { hasBegin = false, hasCommit = false, name = 'statement', text = 'select', values = [] } = given;
  const { statements = [{ name, text, values }] } = given;
  const run = { statements, hasBegin, hasCommit };
  const query = new StatementQuery(session, run, (error, results) => (outcome = { error, results }));
  let types = '';
  const write = (bytes: Buffer): void => {
    for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1))
      types += String.fromCharCode(bytes[at] ?? 0);
  };
  const stream = { writable: true, write } as unknown as Parameters<StatementQuery['submit']>[0]['stream'];
  const error = query.submit({ stream, sendCopyFail: () => undefined });
  return { query, types, error };
}

function finish(query: StatementQuery, ...rows: readonly (readonly (string | null)[])[]): void {
  for (const fields of rows) query.handleDataRow({ fields });
  query.handleCommandComplete({ text: `SELECT ${rows.length}` });
  query.handleReadyForQuery();
}

describe('a run of a named statement', () => {
  it('prepares it once, and reads rows by the columns that were described then', () => {
    const first = start();
    expect(first.types).toBe('CPDBES');
    first.query.handleRowDescription({ fields: FIELDS });
    finish(first.query, ['a', '1']);
    expect(outcome?.results).toEqual([{ command: 'SELECT', rowCount: 1, rows: [{ id: 'a', size: 1 }] }]);
    const second = start();
    expect(second.types).toBe('BES');
    finish(second.query, ['b', null], [null, '2']);
    expect(outcome?.results[0]?.rows).toEqual([
      { id: 'b', size: null },
      { id: null, size: 2 },
    ]);
  });

  it('prepares it again after an error, for it may be prepared or not', () => {
    const { query } = start();
    query.handleRowDescription({ fields: FIELDS });
    const error = new Error('failed');
    query.handleError(error);
    expect(outcome).toEqual({ error, results: [] });
    expect(start().types).toBe('CPDBES');
  });

  it('prepares one without a name each time', () => {
    for (const _ of [1, 2]) {
      const { query, types } = start({ name: '' });
      expect(types).toBe('CPDBES');
      query.handleRowDescription({ fields: FIELDS });
      finish(query, ['a', '1']);
    }
  });

  it('reads to the end when a value cannot be read, and rejects then', () => {
    const { query } = start();
    query.handleRowDescription({ fields: FIELDS });
    query.handleDataRow({ fields: ['a', 'no number'] });
    query.handleDataRow({ fields: ['b', '1'] });
    expect(outcome).toBeUndefined();
    finish(query);
    expect(outcome?.error).toBeInstanceOf(SyntaxError);
  });

  it.each(['1', 'no number'])(
    'has no rows where a COMMIT follows it, also none that cannot be read: %s',
    (size) => {
      const { query } = start({ hasCommit: true });
      query.handleRowDescription({ fields: FIELDS });
      query.handleDataRow({ fields: ['a', size] });
      for (const text of ['INSERT 0 1', 'COMMIT']) query.handleCommandComplete({ text });
      query.handleReadyForQuery();
      expect(outcome?.results).toEqual([{ command: 'COMMIT', rowCount: 0, rows: [] }]);
    },
  );

  it('is refused where another statement has its name', () => {
    const { query } = start();
    query.handleRowDescription({ fields: FIELDS });
    finish(query);
    const { error, types } = start({ text: 'select another' });
    expect([error?.message, types]).toEqual(['two statements are named statement', '']);
  });

  it('has the results of all its statements, of which the last one loses its rows to a COMMIT', () => {
    const statements = ['a', 'b'].map((name) => ({ name, text: `select ${name}`, values: [] }));
    const { query, types } = start({ statements, hasBegin: true, hasCommit: true });
    expect(types).toBe('PBECPDBECPDBEPBES');
    query.handleCommandComplete({ text: 'BEGIN' });
    for (const id of ['1', '2']) {
      query.handleRowDescription({ fields: FIELDS });
      query.handleDataRow({ fields: [id, null] });
      query.handleCommandComplete({ text: 'SELECT 1' });
    }
    query.handleCommandComplete({ text: 'COMMIT' });
    query.handleReadyForQuery();
    expect(outcome?.results).toEqual([
      { command: 'SELECT', rowCount: 1, rows: [{ id: '1', size: null }] },
      { command: 'COMMIT', rowCount: 0, rows: [] },
    ]);
    expect(start({ statements }).types).toBe('BEBES');
  });

  it('has the results of the statements before the one that failed', () => {
    const statements = ['a', 'b'].map((name) => ({ name, text: `select ${name}`, values: [] }));
    const { query } = start({ statements, hasBegin: true });
    for (const text of ['BEGIN', 'UPDATE 2']) query.handleCommandComplete({ text });
    const error = new Error('failed');
    query.handleError(error);
    expect(outcome).toEqual({ error, results: [{ command: 'UPDATE', rowCount: 2, rows: [] }] });
  });
});
