import { describe, expect, it } from 'vitest';
import { checkStorm, type Snapshot } from './storm/storm-checks.ts';
import { checkJobs } from './storm/storm-jobs.ts';
import { createLedger, type Ledger, type ListenerStory } from './storm/storm-ledger.ts';

type Events = Snapshot['events'];

function listener(computeId: string, given: Partial<ListenerStory> = {}): ListenerStory {
  return {
    computeId,
    firstVersion: 'first',
    id: `id-${computeId}`,
    isKnownStored: false,
    versions: [],
    lostVersion: undefined,
    deletion: 'none',
    ...given,
  };
}

function eventsOf(...descriptions: readonly string[]): Events {
  return descriptions.map((text, i) => {
    const [outcome, operation = '', ...resources] = text.split(' ');
    return { seq: 1 + i, operation, isSuccess: outcome === 'success', resources };
  });
}

/** A storm with one case of everything, and its database. */
function scene(): { readonly ledger: Ledger; readonly snapshot: Snapshot } {
  const ledger = createLedger();
  ledger.listeners.push(
    listener('stored', { versions: ['second'] }),
    listener('lost', { id: undefined }),
    listener('never', { id: undefined }),
    listener('changed', { lostVersion: 'changed-2' }),
    listener('deleted', { deletion: 'done' }),
  );
  ledger.keys.push({ description: 'key', id: 'id-key', deletion: 'none' });
  ledger.records.push({ source: 'source', sandbox: 's', last: 9, added: 9 });
  ledger.rejections.push(
    { operation: 'update_listener', id: 'nothing', hasResponded: true },
    { operation: 'create_listener', id: undefined, hasResponded: false },
  );
  ledger.unwritten.push('rejected');
  const events = eventsOf(
    'success create_listener id-stored',
    'success update_listener id-stored',
    'success create_listener id-lost',
    'success create_listener id-changed',
    'success update_listener id-changed',
    'success create_listener id-deleted',
    'success delete_listener id-deleted',
    'success create_api_key id-key',
    'failure update_listener nothing',
  );
  const listeners = [
    { id: 'id-stored', computeId: 'stored', version: 'second' },
    { id: 'id-lost', computeId: 'lost', version: 'first' },
    { id: 'id-changed', computeId: 'changed', version: 'changed-2' },
  ];
  const keys = [{ id: 'id-key', description: 'key' }];
  const records = [{ source: 'source', count: 9, last: 9 }];
  return { ledger, snapshot: { listeners, keys, events, headSeq: 9, records } };
}

function renumber(snapshot: Snapshot, events: Events): Snapshot {
  const numbered = events.map((event, i) => ({ ...event, seq: 1 + i }));
  return { ...snapshot, events: numbered, headSeq: events.length };
}

describe('the comparison of the clients with the database', () => {
  it('passes when every write without a response was either stored or rolled back completely', () => {
    const { ledger, snapshot } = scene();
    expect(checkStorm(ledger, snapshot)).toEqual([]);
  });

  const without = (computeId: string) => (snapshot: Snapshot) => ({
    ...snapshot,
    listeners: snapshot.listeners.filter((row) => row.computeId !== computeId),
  });
  const withoutEvent = (at: number) => (snapshot: Snapshot) =>
    renumber(snapshot, snapshot.events.toSpliced(at, 1));
  const withEvent = (event: string) => (snapshot: Snapshot) =>
    renumber(snapshot, [...snapshot.events, ...eventsOf(event)]);
  const withListener = (computeId: string) => (snapshot: Snapshot) => ({
    ...snapshot,
    listeners: [...snapshot.listeners, { id: `id-${computeId}`, computeId, version: 'first' }],
  });
  const rows: readonly (readonly [string, (snapshot: Snapshot) => Snapshot, string])[] = [
    ['an acknowledged write that is missing', without('stored'), 'stored was acknowledged, and is missing'],
    ['an event whose write is missing', without('lost'), '1 events instead of 0 of create_listener id-lost'],
    ['a write without its event', withoutEvent(2), '0 events instead of 1 of create_listener id-lost'],
    ['a stored change without its event', withoutEvent(4), '0 events instead of 1 of update_listener'],
    [
      'a duplicate event',
      withEvent('success create_listener id-stored'),
      '2 events instead of 1 of create_listener id-stored',
    ],
    [
      'an event without a write',
      withEvent('success delete_listener id-x'),
      '1 events instead of 0 of delete_listener',
    ],
    ['a deleted listener that is stored', withListener('deleted'), 'deleted was deleted, and is stored'],
    ['a rejected listener that is stored', withListener('rejected'), 'rejected was rejected, and is stored'],
    [
      'an old version',
      (snapshot) => ({
        ...snapshot,
        listeners: snapshot.listeners.map((row) =>
          row.computeId === 'stored' ? { ...row, version: 'first' } : row,
        ),
      }),
      'stored has the version first instead of second',
    ],
    ['a missing key', (snapshot) => ({ ...snapshot, keys: [] }), 'the key key was acknowledged'],
    [
      'a rejection without its failure',
      withoutEvent(8),
      '0 failures for 1 to 1 rejections of update_listener nothing',
    ],
    ['a duplicate failure', withEvent('failure update_listener nothing'), '2 failures for 1 to 1'],
    ['a failure of a successful write', withEvent('failure create_api_key '), '1 failures for 0 to 0'],
    [
      'a missing record',
      (snapshot) => ({ ...snapshot, records: [{ source: 'source', count: 8, last: 9 }] }),
      '8 records up to 9 instead of 9 of source',
    ],
    [
      'a gap in the chain',
      (snapshot) => ({ ...snapshot, events: snapshot.events.map((one) => ({ ...one, seq: one.seq * 2 })) }),
      'the chain has a gap before 2',
    ],
    ['a head that is behind its chain', (snapshot) => ({ ...snapshot, headSeq: 8 }), 'its head is 8'],
  ];
  it.each(rows)('reports %s', (_, spoil, message) => {
    const { ledger, snapshot } = scene();
    expect(checkStorm(ledger, spoil(snapshot)).join('\n')).toContain(message);
  });
});

describe('the check of the jobs', () => {
  const started = (life: string, atMs: number) => ({ job: 'j', life, atMs, what: 'started' }) as const;
  const done = (life: string, atMs: number) => ({ job: 'j', life, atMs, what: 'done' }) as const;
  const deaths = new Map([['a1', 1_000]]);

  it('measures how long each took to start again', () => {
    const events = [started('a1', 0), started('b1', 12_000), done('b1', 20_000)];
    expect(checkJobs(['j'], events, deaths)).toEqual({ errors: [], rerunsMs: [11_000] });
  });

  it.each([
    [
      'a job that started again too late',
      [started('a1', 0), started('b1', 16_001), done('b1', 17_000)],
      'started again',
    ],
    [
      'a job that runs twice at once',
      [started('b1', 0), started('a2', 500), done('a2', 600)],
      'while it ran in b1',
    ],
    ['a job that finished twice', [started('b1', 0), done('b1', 5), done('b1', 6)], 'was done 2 times'],
    ['a job that never started', [], 'was never started'],
    ['a job that never finished', [started('b1', 0)], 'was done 0 times'],
  ] as const)('reports %s', (_, events, message) => {
    expect(checkJobs(['j'], events, deaths).errors.join('\n')).toContain(message);
  });
});
