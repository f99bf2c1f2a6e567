// Compares what the clients know with the database: an acknowledged write is stored, every write has its event and every
// event its write, and nothing is stored twice. Pure: returns the errors.
import type { Ledger, ListenerStory, Operation } from './storm-ledger.ts';

export type StoredEvent = {
  readonly seq: number;
  readonly operation: string;
  readonly isSuccess: boolean;
  readonly resources: readonly string[];
};

/** The contents of the database after every process has ended. */
export type Snapshot = {
  readonly listeners: readonly {
    readonly id: string;
    readonly computeId: string;
    readonly version: string;
  }[];
  readonly keys: readonly { readonly id: string; readonly description: string }[];
  /** In the order of the chain. */
  readonly events: readonly StoredEvent[];
  /** The number in the head of the chain. */
  readonly headSeq: number;
  readonly records: readonly { readonly source: string; readonly count: number; readonly last: number }[];
};

export function checkStorm(ledger: Ledger, snapshot: Snapshot): readonly string[] {
  const expected = new Map<string, number>();
  const errors = [
    ...ledger.errors,
    ...checkListeners(ledger, snapshot, expected),
    ...checkKeys(ledger, snapshot, expected),
    ...checkRecords(ledger, snapshot),
    ...checkSequence(snapshot),
    ...checkFailures(ledger, snapshot),
  ];
  return [...errors, ...compareEvents(expected, snapshot)];
}

type Expected = Map<string, number>;

function expectEvent(expected: Expected, operation: Operation, id: string, times = 1): void {
  if (times > 0) expected.set(`${operation} ${id}`, times);
}

function checkListeners(ledger: Ledger, snapshot: Snapshot, expected: Expected): readonly string[] {
  const rows = new Map(snapshot.listeners.map((row) => [row.computeId, row]));
  const errors = ledger.listeners.flatMap((story) => {
    const row = rows.get(story.computeId);
    const id = story.id ?? row?.id;
    if (id === undefined)
      return story.isKnownStored
        ? [`${story.computeId} was a duplicate when it was sent again, and is missing`]
        : [];
    const isLostStored = story.lostVersion !== undefined && row?.version === story.lostVersion;
    expectEvent(expected, 'create_listener', id);
    expectEvent(expected, 'update_listener', id, story.versions.length + (isLostStored ? 1 : 0));
    if (row === undefined) expectEvent(expected, 'delete_listener', id);
    return checkListener(story, row);
  });
  const written = ledger.unwritten.filter((computeId) => rows.has(computeId));
  return [...errors, ...written.map((computeId) => `${computeId} was rejected, and is stored`)];
}

function checkListener(
  story: ListenerStory,
  row: Snapshot['listeners'][number] | undefined,
): readonly string[] {
  const { computeId, deletion, versions, firstVersion, lostVersion } = story;
  if (row === undefined) return deletion === 'none' ? [`${computeId} was acknowledged, and is missing`] : [];
  if (deletion === 'done') return [`${computeId} was deleted, and is stored`];
  const last = versions.at(-1) ?? firstVersion;
  const isRight = row.version === last || row.version === lostVersion;
  return isRight ? [] : [`${computeId} has the version ${row.version} instead of ${last}`];
}

function checkKeys({ keys }: Ledger, snapshot: Snapshot, expected: Expected): readonly string[] {
  const rows = new Map(snapshot.keys.map((row) => [row.description, row]));
  return keys.flatMap(({ description, id: responded, deletion }) => {
    const row = rows.get(description);
    const id = responded ?? row?.id;
    if (id === undefined) return [];
    expectEvent(expected, 'create_api_key', id);
    if (row === undefined) expectEvent(expected, 'delete_api_key', id);
    if (row === undefined && deletion === 'none')
      return [`the key ${description} was acknowledged, and is missing`];
    return row !== undefined && deletion === 'done'
      ? [`the key ${description} was deleted, and is stored`]
      : [];
  });
}

/** Operations before the storm. */
const BEFORE: readonly string[] = [
  'create_organization',
  'create_workspace',
  'create_service_key',
  'create_sandbox_token',
];

/** Each successful event has its write, and each write has exactly one event. */
function compareEvents(expected: Expected, { events }: Snapshot): readonly string[] {
  const found = new Map<string, number>();
  for (const { isSuccess, operation, resources } of events) {
    const name = `${operation} ${resources.join(' ')}`;
    if (isSuccess && !BEFORE.includes(operation)) found.set(name, (found.get(name) ?? 0) + 1);
  }
  const names = [...new Set([...expected.keys(), ...found.keys()])];
  return names
    .filter((name) => expected.get(name) !== found.get(name))
    .map((name) => `${found.get(name) ?? 0} events instead of ${expected.get(name) ?? 0} of ${name}`);
}

/** A rejection that a client received has its event; one whose response was lost may have one. */
function checkFailures({ rejections }: Ledger, { events }: Snapshot): readonly string[] {
  const failures = events.filter(({ isSuccess }) => !isSuccess);
  const names = new Set(failures.map(({ operation, resources }) => `${operation} ${resources.join(' ')}`));
  for (const { operation, id } of rejections) names.add(`${operation} ${id ?? ''}`);
  return [...names].flatMap((name) => {
    const found = failures.filter(
      ({ operation, resources }) => `${operation} ${resources.join(' ')}` === name,
    );
    const of = rejections.filter(({ operation, id }) => `${operation} ${id ?? ''}` === name);
    const responded = of.filter(({ hasResponded }) => hasResponded).length;
    const isRight = found.length >= responded && found.length <= of.length;
    return isRight ? [] : [`${found.length} failures for ${responded} to ${of.length} rejections of ${name}`];
  });
}

function checkRecords({ records }: Ledger, snapshot: Snapshot): readonly string[] {
  const rows = new Map(snapshot.records.map((row) => [row.source, row]));
  return records.flatMap(({ source, last }) => {
    const { count, last: stored } = rows.get(source) ?? { count: 0, last: 0 };
    return count === last && stored === last
      ? []
      : [`${count} records up to ${stored} instead of ${last} of ${source}`];
  });
}

function checkSequence({ events, headSeq }: Snapshot): readonly string[] {
  const gap = events.find(({ seq }, i) => seq !== 1 + i);
  if (gap !== undefined) return [`the chain has a gap before ${gap.seq}`];
  const last = events.length;
  return last === headSeq ? [] : [`the chain ends at ${last}, and its head is ${headSeq}`];
}
