import { createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { genesis, hashOf, type Link } from '../../../src/platform/audit/chain.ts';
import { type CheckpointSink, openCheckpointSink } from '../../../src/platform/audit/checkpoint-sink.ts';
import { writeCheckpoints } from '../../../src/platform/audit/checkpointing.ts';
import { type Finding, formatFinding } from '../../../src/platform/audit/finding.ts';
import { appendEvent } from '../../../src/platform/audit/journal.ts';
import { type VerificationCounts, verifyLog } from '../../../src/platform/audit/verify.ts';
import type { Store, Transaction } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { hasDebianPostgres } from '../../support/debian-postgres.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { entryOf } from './audit-entry.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const { privateKey: key } = generateKeyPairSync('ed25519');
const hasDebian = await hasDebianPostgres();

let database: TestDatabase;
let scratch: Scratch;
let organizationId: string;
let file: string;
let sink: CheckpointSink;

beforeAll(async () => {
  database = await createTestDatabase();
  scratch = await createScratch();
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await scratch[Symbol.asyncDispose]();
});
beforeEach(() => {
  organizationId = randomUUID();
  file = join(scratch.path, organizationId, 'checkpoints.jsonl');
  sink = openCheckpointSink(file);
});

async function append(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1)
    await database.store.write((trx) =>
      appendEvent(trx, entryOf(organizationId, { workspaceId: randomUUID() })),
    );
}

async function checkpoint(): Promise<void> {
  await writeCheckpoints(database.store, sink, key);
}

type Result = VerificationCounts & { readonly found: readonly Finding[] };

type Change = { readonly nowMs?: number; readonly keys?: readonly KeyObject[]; readonly store?: Store };

async function verify(change: Change = {}): Promise<Result> {
  const found: Finding[] = [];
  const counts = await verifyLog({
    store: database.store,
    checkpoints: sink.read(),
    keys: [createPublicKey(key)],
    nowMs: Date.now(),
    organizationId,
    report: (finding) => found.push(finding),
    ...change,
  });
  expect(counts.findings).toBe(found.length);
  return { ...counts, found };
}

/** `kind first..last`, in the order of events. */
async function errors(change: Change = {}): Promise<readonly string[]> {
  const { found } = await verify(change);
  const sorted = found.toSorted((a, b) => Number(a.seq - b.seq) || a.kind.localeCompare(b.kind));
  return sorted.map(
    ({ kind, seq, lastSeq }) => `${kind} ${seq}${lastSeq === undefined ? '' : `..${lastSeq}`}`,
  );
}

/** As the superuser, bypassing every trigger. */
async function tamper(work: (trx: Transaction) => Promise<unknown>): Promise<void> {
  await database.owner.write(async (trx) => {
    await sql`set local session_replication_role = replica`.execute(trx);
    await work(trx);
  });
}

async function readLinks(trx: Transaction): Promise<Link[]> {
  const rows = await trx
    .selectFrom('audit_events')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('seq')
    .execute();
  return rows.map((row) => ({
    organizationId,
    seq: BigInt(row.seq),
    id: row.id,
    timeMs: String(row.time.getTime()),
    operation: row.operation,
    workspaceId: row.workspace_id,
    record: row.record,
    previousHash: row.previous_hash,
    hash: row.hash,
  }));
}

/** What an attacker does who knows how the chain is computed. */
async function rewriteFrom(trx: Transaction, seq: bigint): Promise<void> {
  let previousHash: Buffer = genesis;
  for (const link of await readLinks(trx)) {
    if (link.seq >= seq) {
      const record = link.seq === seq ? link.record.replace('POST', 'GET') : link.record;
      const hash = hashOf({ ...link, record, previousHash }) ?? genesis;
      await sql`update audit_events set record = ${record}, previous_hash = ${previousHash}, hash = ${hash}
        where organization_id = ${organizationId} and seq = ${String(link.seq)}`.execute(trx);
      previousHash = hash;
    } else previousHash = link.hash;
  }
  await sql`update audit_heads set hash = ${previousHash} where organization_id = ${organizationId}`.execute(
    trx,
  );
}

/** Runs statements in which `:mine` selects the organization of the test. */
async function run(trx: Transaction, ...statements: readonly string[]): Promise<void> {
  await sql`select set_config('test.organization', ${organizationId}, true)`.execute(trx);
  for (const statement of statements)
    await sql
      .raw(statement.replaceAll(':mine', "organization_id = current_setting('test.organization')::uuid"))
      .execute(trx);
}

describe('an untouched log', () => {
  it('is intact, with and without checkpoints, before and after more events', async () => {
    await append(3);
    expect(await verify()).toMatchObject({ events: 3, checkpoints: 0, findings: 0 });
    await checkpoint();
    await append(2);
    expect(await verify()).toMatchObject({ events: 5, findings: 0 });
    await checkpoint();
    const twice = await readFile(file, 'utf8');
    await checkpoint();
    expect(await readFile(file, 'utf8')).toBe(twice);
    expect(await verify()).toMatchObject({ events: 5, findings: 0, unreadable: 0 });
  });

  it('is intact under concurrent writes', async () => {
    const writing = append(200);
    for (let n = 0; n < 5; n += 1) {
      expect(await errors()).toEqual([]);
      await checkpoint();
    }
    await writing;
    expect(await verify()).toMatchObject({ events: 200, findings: 0 });
  });

  it.skipIf(!hasDebian)(
    'is intact on an older PostgreSQL (skipped without the one of Debian)',
    { tags: ['long'] },
    async () => {
      await using older = await createTestDatabase({ server: 'debian' });
      for (let n = 0; n < 3; n += 1)
        await older.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
      await writeCheckpoints(older.store, sink, key);
      const result = await verify({ store: older.store });
      expect(result).toMatchObject({ events: 3, checkpoints: 1, findings: 0 });
    },
  );

  it('is read in pages', async () => {
    await sql`select audit_append(${organizationId}, 'login', null, n::text) from generate_series(1, 1250) n`.execute(
      database.store.db,
    );
    expect(await verify()).toMatchObject({ events: 1250, findings: 0 });
  });

  it('is intact when two processes wrote the same checkpoint and a write was cut off', async () => {
    await append(3);
    await checkpoint();
    const line = await readFile(file, 'utf8');
    await appendFile(file, line + line.slice(0, 40));
    await append(1);
    await checkpoint();
    expect(await verify()).toMatchObject({ unreadable: 1, findings: 0 });
  });
});

describe('in a log that the superuser tampered with, the verifier reports', () => {
  const other = randomUUID();
  const columns: readonly (readonly [string, string])[] = [
    ['the time', "time = time - interval '1 millisecond'"],
    ['the time, to infinity', "time = 'infinity'"],
    ['the operation', "operation = 'login'"],
    ['the workspace', `workspace_id = '${other}'`],
    ['the workspace, to null', 'workspace_id = null'],
    ['the id', 'id = gen_random_uuid()'],
    ['the record', "record = replace(record, '201', '404')"],
    ['the record, to nothing', "record = ''"],
    ['the previous hash', "previous_hash = sha256('x')"],
    ['the hash', "hash = sha256('x')"],
    ['the hash, to nothing', "hash = ''"],
  ];
  it.each(columns)('an edited event: %s', async (_, change) => {
    await append(5);
    await checkpoint();
    for (const seq of [1, 3, 5]) {
      await tamper((trx) => run(trx, `update audit_events set ${change} where :mine and seq = ${seq}`));
    }
    const found = await errors();
    expect(found.filter((error) => error.startsWith('edited'))).toEqual(['edited 1', 'edited 3', 'edited 5']);
    expect(found.filter((error) => !/^(edited|rewritten 5)/.test(error))).toEqual([]);
  });

  it('the id of an edited event, in one line', async () => {
    await append(2);
    await tamper((trx) => run(trx, "update audit_events set operation = 'login' where :mine and seq = 2"));
    const { found } = await verify();
    const [event] = await database.owner.db
      .selectFrom('audit_events')
      .select('id')
      .where('organization_id', '=', organizationId)
      .where('seq', '=', '2')
      .execute();
    expect(found.map(formatFinding)).toEqual([
      `edited: organization ${organizationId}, event 2 (${event?.id}): its content does not match its hash`,
    ]);
  });

  it('an event that was edited together with its hash', async () => {
    await append(4);
    await tamper(async (trx) => {
      const link = (await readLinks(trx))[1];
      if (link === undefined) throw new Error('no event');
      const hash = hashOf({ ...link, operation: 'login' });
      await sql`update audit_events set operation = 'login', hash = ${hash} where id = ${link.id}`.execute(
        trx,
      );
    });
    expect(await errors()).toEqual(['unlinked 3']);
  });

  it('deleted events', async () => {
    await append(9);
    await tamper((trx) => run(trx, 'delete from audit_events where :mine and seq in (1, 4, 5, 8)'));
    expect(await errors()).toEqual(['deleted 1..1', 'deleted 4..5', 'deleted 8..8']);
  });

  it('a truncated tail', async () => {
    await append(6);
    await tamper((trx) => run(trx, 'delete from audit_events where :mine and seq > 4'));
    expect(await errors()).toEqual(['truncated 5..6']);
  });

  it('a truncated tail with a rewritten head, thanks to a checkpoint', async () => {
    await append(6);
    await checkpoint();
    await tamper((trx) =>
      run(
        trx,
        'delete from audit_events where :mine and seq > 4',
        `update audit_heads set seq = 4, hash = (select hash from audit_events where :mine and seq = 4) where :mine`,
      ),
    );
    expect(await errors()).toEqual(['truncated 5..6']);
    await append(3);
    expect(await errors()).toEqual(['rewritten 6']);
  });

  it('two events that changed places', async () => {
    await append(6);
    for (const [a, b] of [
      [2, 3],
      [1, 6],
    ])
      await tamper((trx) =>
        run(
          trx,
          `update audit_events set seq = -1 where :mine and seq = ${a}`,
          `update audit_events set seq = ${a} where :mine and seq = ${b}`,
          `update audit_events set seq = ${b} where :mine and seq = -1`,
        ),
      );
    expect(await errors()).toEqual(['reordered 1', 'reordered 2', 'reordered 3', 'reordered 6']);
  });

  it('an event that was moved to the end', async () => {
    await append(4);
    await tamper((trx) =>
      run(
        trx,
        'update audit_events set seq = 5 where :mine and seq = 2',
        'update audit_heads set seq = 5 where :mine',
      ),
    );
    expect(await errors()).toEqual(['reordered 5']);
  });

  it('an inserted event', async () => {
    await append(4);
    const copy = (seq: number): string => `insert into audit_events
      select organization_id, ${seq}, gen_random_uuid(), time, 'login', workspace_id, record, previous_hash, hash
      from audit_events where :mine and seq = 2`;
    await tamper((trx) =>
      run(
        trx,
        'update audit_events set seq = seq + 100 where :mine and seq > 2',
        'update audit_events set seq = seq - 99 where :mine and seq > 100',
        copy(3),
        copy(0),
        copy(7),
      ),
    );
    expect(await errors()).toEqual(['inserted 0', 'edited 3', 'reordered 4', 'inserted 5', 'inserted 7']);
  });

  it('a rewritten suffix with correct hashes, thanks to checkpoints only', async () => {
    await append(3);
    await checkpoint();
    await append(3);
    await checkpoint();
    await append(1);
    await tamper((trx) => rewriteFrom(trx, 5n));
    expect(await errors()).toEqual(['rewritten 6']);
    await writeFile(file, '');
    expect(await errors()).toEqual(['checkpoint_missing 6']);
  });

  it('an edited or missing head', async () => {
    await append(3);
    await tamper((trx) => run(trx, "update audit_heads set hash = sha256('x') where :mine"));
    expect(await errors()).toEqual(['head_edited 3']);
    await tamper((trx) => run(trx, 'delete from audit_heads where :mine'));
    expect(await errors()).toEqual(['head_edited 3']);
  });

  it('an organization that was removed completely', async () => {
    await append(3);
    await checkpoint();
    await tamper((trx) =>
      run(
        trx,
        ...['audit_events', 'audit_heads', 'audit_checkpoints'].map(
          (table) => `delete from ${table} where :mine`,
        ),
      ),
    );
    expect(await errors()).toEqual(['removed 1..3']);
  });

  it('the right one of several organizations', async () => {
    await append(2);
    await tamper((trx) => run(trx, "update audit_events set operation = 'login' where :mine and seq = 1"));
    const tampered = organizationId;
    organizationId = randomUUID();
    await append(1);
    const found: Finding[] = [];
    await verifyLog({
      store: database.store,
      checkpoints: sink.read(),
      keys: [createPublicKey(key)],
      nowMs: Date.now(),
      organizationId: undefined,
      report: (finding) => found.push(finding),
    });
    const named = found.filter((finding) => [tampered, organizationId].includes(finding.organizationId));
    expect(named).toMatchObject([{ organizationId: tampered, kind: 'edited', seq: 1n }]);
  });
});

describe('the checkpoints', () => {
  it('are reported as missing, whichever one is removed', async () => {
    for (let n = 0; n < 4; n += 1) {
      await append(1);
      await checkpoint();
    }
    const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line.includes(organizationId));
    expect(lines).toHaveLength(4);
    for (const [at] of lines.entries()) {
      await writeFile(file, `${lines.toSpliced(at, 1).join('\n')}\n`);
      expect(await errors()).toEqual([`checkpoint_missing ${at + 1}`]);
    }
    await writeFile(file, '');
    expect(await errors()).toEqual(['checkpoint_missing 4']);
  });

  it.each([
    ['seq', '"seq":"2"', '"seq":"1"'],
    ['hash', /"hash":"[0-9a-f]{8}/, '"hash":"00000000'],
    ['time', /"time":\d/, '"time":2'],
    ['after', '"after":"0"', '"after":"1"'],
    ['since', /"since":\d/, '"since":2'],
    ['signature', /"signature":"..../, '"signature":"AAAA'],
  ])('are reported as forged when their %s was edited', async (_, from, to) => {
    await append(2);
    await checkpoint();
    await writeFile(file, (await readFile(file, 'utf8')).replaceAll(new RegExp(from, 'g'), to));
    expect((await errors()).map((error) => error.split(' ')[0])).toContain('checkpoint_forged');
  });

  it('prove nothing when another key signed them', async () => {
    await append(2);
    await checkpoint();
    const unrelated = createPublicKey(generateKeyPairSync('ed25519').privateKey);
    expect(await errors({ keys: [unrelated] })).toEqual(['checkpoint_forged 2']);
    expect(await errors({ keys: [unrelated, createPublicKey(key)] })).toEqual([]);
  });

  it('are not written for a head that contradicts its event', async () => {
    await append(2);
    await tamper((trx) => run(trx, "update audit_heads set hash = sha256('x') where :mine"));
    await checkpoint();
    expect(await readFile(file, 'utf8').catch(() => '')).not.toContain(organizationId);
  });
});

describe('events that retention removed', () => {
  it('are reported only when they were too recent', async () => {
    await append(3);
    await checkpoint();
    await append(2);
    await tamper((trx) =>
      run(
        trx,
        `update audit_heads set floor_seq = 3, floor_hash = (select hash from audit_events where :mine and seq = 3) where :mine`,
        'delete from audit_events where :mine and seq <= 3',
      ),
    );
    expect(await errors({ nowMs: Date.now() + 401 * DAY_MS })).toEqual([]);
    expect(await errors()).toEqual(['expired_early 3']);
    await tamper((trx) => run(trx, "update audit_heads set floor_hash = sha256('x') where :mine"));
    expect(await errors({ nowMs: Date.now() + 401 * DAY_MS })).toEqual(['rewritten 3', 'unlinked 4']);
  });
});
