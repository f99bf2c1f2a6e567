import { describe, expect, it } from 'vitest';
import { judgeStorm, type Snapshot } from './storm/storm-checks.ts';
import { judgeJobs } from './storm/storm-jobs.ts';
import { createLedger, type Ledger, type ListenerStory } from './storm/storm-ledger.ts';

type Events = Snapshot['events'];

function listener(computeId: string, given: Partial<ListenerStory> = {}): ListenerStory {
  return {
    computeId,
    firstVersion: 'first',
    id: `id-${computeId}`,
    isKnownKept: false,
    versions: [],
    lostVersion: undefined,
    deletion: 'none',
    ...given,
  };
}

function eventsOf(...reported: readonly string[]): Events {
  return reported.map((text, i) => {
    const [outcome, operation = '', ...resources] = text.split(' ');
    return { seq: 1 + i, operation, isSuccess: outcome === 'success', resources };
  });
}

/** A storm in which every kind of thing happened once, and its database. */
function scene(): { readonly ledger: Ledger; readonly snapshot: Snapshot } {
  const ledger = createLedger();
  ledger.listeners.push(
    listener('kept', { versions: ['second'] }),
    listener('lost', { id: undefined }),
    listener('never', { id: undefined }),
    listener('changed', { lostVersion: 'changed-2' }),
    listener('deleted', { deletion: 'done' }),
  );
  ledger.keys.push({ description: 'key', id: 'id-key', deletion: 'none' });
  ledger.records.push({ source: 'source', sandbox: 's', last: 9, added: 9 });
  ledger.refusals.push(
    { operation: 'update_listener', id: 'nothing', hasResponded: true },
    { operation: 'create_listener', id: undefined, hasResponded: false },
  );
  ledger.unwritten.push('refused');
  const events = eventsOf(
    'success create_listener id-kept',
    'success update_listener id-kept',
    'success create_listener id-lost',
    'success create_listener id-changed',
    'success update_listener id-changed',
    'success create_listener id-deleted',
    'success delete_listener id-deleted',
    'success create_api_key id-key',
    'failure update_listener nothing',
  );
  const listeners = [
    { id: 'id-kept', computeId: 'kept', version: 'second' },
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

describe('what the clients know, held against the database', () => {
  it('agrees when every lost answer was either wholly kept or wholly undone', () => {
    const { ledger, snapshot } = scene();
    expect(judgeStorm(ledger, snapshot)).toEqual([]);
  });

  const without = (computeId: string) => (snapshot: Snapshot) => ({
    ...snapshot,
    listeners: snapshot.listeners.filter((row) => row.computeId !== computeId),
  });
  const withoutEvent = (at: number) => (snapshot: Snapshot) =>
    renumber(snapshot, snapshot.events.toSpliced(at, 1));
  const withEvent = (reported: string) => (snapshot: Snapshot) =>
    renumber(snapshot, [...snapshot.events, ...eventsOf(reported)]);
  const withListener = (computeId: string) => (snapshot: Snapshot) => ({
    ...snapshot,
    listeners: [...snapshot.listeners, { id: `id-${computeId}`, computeId, version: 'first' }],
  });
  const rows: readonly (readonly [string, (snapshot: Snapshot) => Snapshot, string])[] = [
    ['a write that was answered and is not there', without('kept'), 'kept was answered, and is not there'],
    [
      'an event whose write is not there',
      without('lost'),
      '1 events instead of 0 of create_listener id-lost',
    ],
    ['a write without its event', withoutEvent(2), '0 events instead of 1 of create_listener id-lost'],
    ['a change that was kept without its event', withoutEvent(4), '0 events instead of 1 of update_listener'],
    [
      'an event that is there twice',
      withEvent('success create_listener id-kept'),
      '2 events instead of 1 of create_listener id-kept',
    ],
    [
      'an event of nothing',
      withEvent('success delete_listener id-x'),
      '1 events instead of 0 of delete_listener',
    ],
    ['a deleted one that is there', withListener('deleted'), 'deleted was deleted, and is there'],
    ['a refused one that is there', withListener('refused'), 'refused was refused, and is there'],
    [
      'an old version',
      (snapshot) => ({
        ...snapshot,
        listeners: snapshot.listeners.map((row) =>
          row.computeId === 'kept' ? { ...row, version: 'first' } : row,
        ),
      }),
      'kept has the version first instead of second',
    ],
    ['a key that is not there', (snapshot) => ({ ...snapshot, keys: [] }), 'the key key was answered'],
    [
      'a refusal without its failure',
      withoutEvent(8),
      '0 failures for 1 to 1 refusals of update_listener nothing',
    ],
    ['a failure that is there twice', withEvent('failure update_listener nothing'), '2 failures for 1 to 1'],
    ['a failure of a success', withEvent('failure create_api_key '), '1 failures for 0 to 0'],
    [
      'a record that is missing',
      (snapshot) => ({ ...snapshot, records: [{ source: 'source', count: 8, last: 9 }] }),
      '8 records up to 9 instead of 9 of source',
    ],
    [
      'a gap in the chain',
      (snapshot) => ({ ...snapshot, events: snapshot.events.map((one) => ({ ...one, seq: one.seq * 2 })) }),
      'the chain has a gap before 2',
    ],
    ['a head behind its chain', (snapshot) => ({ ...snapshot, headSeq: 8 }), 'its head says 8'],
  ];
  it.each(rows)('tells of %s', (_, spoil, reported) => {
    const { ledger, snapshot } = scene();
    expect(judgeStorm(ledger, spoil(snapshot)).join('\n')).toContain(reported);
  });
});

describe('what became of the jobs', () => {
  const begun = (life: string, atMs: number) => ({ job: 'j', life, atMs, what: 'begun' }) as const;
  const done = (life: string, atMs: number) => ({ job: 'j', life, atMs, what: 'done' }) as const;
  const deaths = new Map([['a1', 1_000]]);

  it('is how long each took to begin again', () => {
    const events = [begun('a1', 0), begun('b1', 12_000), done('b1', 20_000)];
    expect(judgeJobs(['j'], events, deaths)).toEqual({ errors: [], rerunsMs: [11_000] });
  });

  it.each([
    [
      'one that began again too late',
      [begun('a1', 0), begun('b1', 16_001), done('b1', 17_000)],
      'begun again',
    ],
    [
      'one that runs twice',
      [begun('b1', 0), begun('a2', 500), done('a2', 600)],
      'while it was under way in b1',
    ],
    ['one that is done twice', [begun('b1', 0), done('b1', 5), done('b1', 6)], 'was done 2 times'],
    ['one that was never begun', [], 'was never begun'],
    ['one that was never done', [begun('b1', 0)], 'was done 0 times'],
  ] as const)('tells of %s', (_, events, reported) => {
    expect(judgeJobs(['j'], events, deaths).errors.join('\n')).toContain(reported);
  });
});
