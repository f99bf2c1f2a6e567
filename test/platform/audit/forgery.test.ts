// Attacks on the log by somebody who controls the whole database and knows how it is verified.
import { createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CheckpointSink, openCheckpointSink } from '../../../src/platform/audit/checkpoint-sink.ts';
import { writeCheckpoints } from '../../../src/platform/audit/checkpointing.ts';
import type { Finding } from '../../../src/platform/audit/finding.ts';
import { verifyLog } from '../../../src/platform/audit/verify.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const { privateKey: key } = generateKeyPairSync('ed25519');

let database: TestDatabase;
let scratch: Scratch;
let organizationId: string;
let file: string;
let sink: CheckpointSink;

// One for each test: the tables themselves are changed.
beforeEach(async () => {
  database = await createTestDatabase();
  organizationId = randomUUID();
  file = join(scratch.path, organizationId);
  sink = openCheckpointSink(file);
  return () => database[Symbol.asyncDispose]();
});
beforeAll(async () => {
  scratch = await createScratch();
});
afterAll(() => scratch[Symbol.asyncDispose]());

async function append(count: number): Promise<void> {
  await sql`select audit_append(${organizationId}, 'login', null, '{}') from generate_series(1, ${count}::int)`.execute(
    database.store.db,
  );
}

async function checkpoint(): Promise<void> {
  await writeCheckpoints(database.store, sink, key);
}

async function errors(nowMs = Date.now()): Promise<readonly string[]> {
  const found: Finding[] = [];
  await verifyLog({
    store: database.store,
    checkpoints: sink.read(),
    keys: [createPublicKey(key)],
    nowMs,
    organizationId: undefined,
    report: (finding) => found.push(finding),
  });
  return found.map(
    ({ kind, seq, lastSeq }) => `${kind} ${seq}${lastSeq === undefined ? '' : `..${lastSeq}`}`,
  );
}

/** `:org` is replaced by the organization of the test. */
async function forge(...statements: readonly string[]): Promise<void> {
  await database.owner.write(async (trx) => {
    await sql`set local session_replication_role = replica`.execute(trx);
    for (const statement of statements)
      await sql.raw(statement.replaceAll(':org', `'${organizationId}'::uuid`)).execute(trx);
  });
}

/** Rewrites the whole chain from `seq` on, with correct hashes. */
const rewriteFrom = (seq: number): string => `do $$ declare e public.audit_events; last bytea; begin
  for e in select * from audit_events where seq >= ${seq} order by seq loop
    if e.seq = ${seq} then e.operation := 'forged'; else e.previous_hash := last; end if;
    e.hash := public.audit_hash(e); last := e.hash;
    update audit_events set operation = e.operation, previous_hash = e.previous_hash, hash = e.hash where seq = e.seq;
  end loop;
  update audit_heads set hash = last;
end $$`;

describe('the verifier reports', () => {
  it('an event that was rewritten before it was signed a second time', async () => {
    await append(3);
    await checkpoint();
    await append(3);
    await checkpoint();
    await forge(rewriteFrom(5), 'update audit_checkpoints set seq = 3');
    await checkpoint();
    expect((await readFile(file, 'utf8')).trim().split('\n')).toHaveLength(3);
    expect(await errors()).toEqual(['rewritten 6']);
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    await writeFile(file, lines.toReversed().join('\n'));
    expect(await errors()).toEqual(['rewritten 6']);
  });

  it('recent events that were removed from the start between two checkpoints', async () => {
    await append(2);
    await checkpoint();
    await append(8);
    await checkpoint();
    await append(1);
    const removeTo = (seq: number): Promise<void> =>
      forge(
        `update audit_heads set floor_seq = ${seq}, floor_hash = (select hash from audit_events where seq = ${seq})`,
        `delete from audit_events where seq <= ${seq}`,
      );
    await removeTo(1);
    expect(await errors()).toEqual(['expired_early 1']);
    await removeTo(6);
    expect(await errors()).toEqual(['expired_early 2', 'expired_early 3']);
    expect(await errors(Date.now() + 401 * DAY_MS)).toEqual([]);
  });

  it('a second event with the same number, wherever it is', async () => {
    await append(1100);
    await forge(
      'alter table audit_events drop constraint audit_events_pkey',
      `insert into audit_events select organization_id, seq, gen_random_uuid(), time, 'forged', null, record, previous_hash, hash
        from audit_events where seq in (500, 777, 1000)`,
    );
    const found = await errors();
    for (const seq of [500, 777, 1000])
      expect(
        found.filter((one) => one.endsWith(` ${seq}`)),
        String(seq),
      ).not.toEqual([]);
  });

  it('an exact copy', async () => {
    await append(1001);
    await forge(
      'alter table audit_events drop constraint audit_events_pkey',
      'alter table audit_events drop constraint audit_events_id',
      'insert into audit_events select * from audit_events where seq in (500, 777, 1000, 1001)',
    );
    const found = await errors();
    for (const seq of [500, 777, 1000, 1001])
      expect(
        found.filter((one) => one.endsWith(` ${seq}`)),
        String(seq),
      ).not.toEqual([]);
  });

  it.each(['seq', 'id', 'time', 'operation', 'record', 'previous_hash', 'hash'])(
    'an event whose %s is null',
    async (column) => {
      await append(3);
      await forge(
        'alter table audit_events drop constraint audit_events_pkey',
        `alter table audit_events alter column ${column} drop not null`,
        `insert into audit_events select organization_id, 2, gen_random_uuid(), time, 'forged', null, record, previous_hash, hash
        from audit_events where seq = 2`,
        `update audit_events set ${column} = null where operation = 'forged'`,
      );
      expect(await errors()).not.toEqual([]);
    },
  );

  it('events of an organization with the nil id', async () => {
    await forge(
      `insert into audit_events values ('00000000-0000-0000-0000-000000000000', 1, gen_random_uuid(), now(), 'forged', null, '{}', '', '')`,
    );
    expect(await errors()).not.toEqual([]);
  });

  it('a floor above the head', async () => {
    await append(3);
    await forge('update audit_heads set floor_seq = 9, floor_hash = hash', 'delete from audit_events');
    expect(await errors()).not.toEqual([]);
  });
});

describe('two machines with files and keys of their own', () => {
  const { privateKey: otherKey } = generateKeyPairSync('ed25519');

  async function verdict(
    from: CheckpointSink,
    keys: readonly KeyObject[],
  ): Promise<{ readonly kinds: readonly string[]; readonly unknownKeys: number }> {
    const kinds: string[] = [];
    const { unknownKeys } = await verifyLog({
      store: database.store,
      checkpoints: from.read(),
      keys: keys.map((one) => createPublicKey(one)),
      nowMs: Date.now(),
      organizationId: undefined,
      report: ({ kind, seq }) => kinds.push(`${kind} ${seq}`),
    });
    return { kinds, unknownKeys };
  }

  it('are each verified by their own key, with a note that there are other keys', async () => {
    const other = openCheckpointSink(`${file}.other`);
    for (let turn = 0; turn < 6; turn += 1) {
      await append(1);
      await writeCheckpoints(database.store, turn % 2 === 0 ? sink : other, turn % 2 === 0 ? key : otherKey);
    }
    expect(await verdict(sink, [key])).toEqual({ kinds: [], unknownKeys: 1 });
    expect(await verdict(other, [otherKey])).toEqual({ kinds: [], unknownKeys: 1 });
    // The file of one machine with the keys of both: the checkpoints of the other machine are missing.
    expect(await verdict(sink, [key, otherKey])).toEqual({ kinds: ['checkpoint_missing 6'], unknownKeys: 0 });
    await writeFile(file, (await readFile(file, 'utf8')).split('\n').slice(1).join('\n'));
    expect(await verdict(sink, [key])).toEqual({ kinds: ['checkpoint_missing 1'], unknownKeys: 1 });
    expect(await verdict(other, [otherKey])).toEqual({ kinds: [], unknownKeys: 1 });
  });

  it('that share a file are verified by both keys', async () => {
    for (const one of [key, otherKey, key]) {
      await append(2);
      await writeCheckpoints(database.store, sink, one);
    }
    expect(await verdict(sink, [key, otherKey])).toEqual({ kinds: [], unknownKeys: 0 });
    await forge(rewriteFrom(3));
    const { kinds } = await verdict(sink, [key, otherKey]);
    expect(kinds).toEqual(expect.arrayContaining(['rewritten 4', 'rewritten 6']));
  });

  it('do not hide that the key next to the log is a new one', async () => {
    await append(2);
    await checkpoint();
    expect(await verdict(openCheckpointSink(`${file}.none`), [otherKey])).toEqual({
      kinds: [],
      unknownKeys: 1,
    });
    expect(await verdict(openCheckpointSink(`${file}.none`), [key])).toEqual({
      kinds: ['checkpoint_missing 2'],
      unknownKeys: 0,
    });
  });
});
