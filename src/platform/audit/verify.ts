// Reads every chain from its floor to its head and compares it with the checkpoints outside the database. Events come
// from one snapshot, so that concurrent writes do not look like tampering. Intact events are not stored.
import type { KeyObject } from 'node:crypto';
import type { Store, Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { genesis, type Link } from './chain.ts';
import { type ChainEnds, ChainWalk } from './chain-walk.ts';
import { type Checkpoint, fingerprintOf } from './checkpoint.ts';
import {
  type CheckpointBook,
  type ReachedSeq,
  checkEnds,
  readCheckpoints,
  reportMissing,
  rewritten,
} from './checkpoint-book.ts';
import type { Finding } from './finding.ts';

export type Verification = {
  readonly store: Store;
  /** The lines of a sink. */
  readonly checkpoints: AsyncIterable<string>;
  /** The public keys that may have signed them. */
  readonly keys: readonly KeyObject[];
  readonly nowMs: number;
  /** Undefined: all organizations. */
  readonly organizationId: string | undefined;
  report(finding: Finding): void;
};

export type VerificationCounts = {
  readonly organizations: number;
  readonly events: number;
  readonly checkpoints: number;
  readonly unreadable: number;
  /** Keys that signed checkpoints according to the database and were not given: their checkpoints are not checked. */
  readonly unknownKeys: number;
  readonly findings: number;
  readonly chains: readonly ChainCoverage[];
};

/** What was found of the chain of one organization. */
export type ChainCoverage = {
  readonly organizationId: string;
  /** Whether the database has anything of it. */
  readonly isStored: boolean;
  /** The time of its first event, in milliseconds since 1970; undefined without one. */
  readonly firstMs: number | undefined;
  /** Of the checkpoints with a valid signature, those of this chain. */
  readonly checkpoints: number;
};

const PAGE = 500;

export async function verifyLog(verification: Verification): Promise<VerificationCounts> {
  const { store, keys, organizationId } = verification;
  let findings = 0;
  const report = (finding: Finding): void => {
    if (organizationId !== undefined && finding.organizationId !== organizationId) return;
    findings += 1;
    verification.report(finding);
  };
  // In this order: the database's list of checkpoints is never newer than the checkpoints, nor they than the events.
  const known = new Set(keys.map(fingerprintOf));
  const { reached, unknownKeys } = await readReached(store, known, organizationId);
  const book = await readCheckpoints(verification.checkpoints, keys, report);
  const { events, chains } = await store.db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute((trx) => verifyChains(trx, { ...verification, report }, book, reached));
  const { checkpoints, unreadable } = book;
  return { organizations: chains.length, events, checkpoints, unreadable, unknownKeys, findings, chains };
}

/** By organization. */
type Reached = ReadonlyMap<string, readonly ReachedSeq[]>;

async function readReached({ db }: Store, known: ReadonlySet<string>, organizationId: string | undefined) {
  let stored = db.selectFrom('audit_checkpoints').selectAll();
  if (organizationId !== undefined) stored = stored.where('organization_id', '=', organizationId);
  const rows = await stored.execute();
  const own = rows.filter(({ signer }) => known.has(signer));
  return {
    reached: Map.groupBy(own, ({ organization_id }) => organization_id),
    unknownKeys: new Set(rows.map(({ signer }) => signer)).difference(known).size,
  };
}

async function verifyChains(
  trx: Transaction,
  { nowMs, organizationId, report }: Verification,
  book: CheckpointBook,
  reached: Reached,
): Promise<{ readonly events: number; readonly chains: readonly ChainCoverage[] }> {
  const known = [...(await readOrganizations(trx)), ...book.organizations, ...reached.keys()];
  const chosen = organizationId === undefined ? [...new Set(known)].toSorted() : [organizationId];
  const chains: ChainCoverage[] = [];
  let events = 0;
  for (const id of chosen) {
    const checkpoints = book.of(id);
    reportMissing(id, checkpoints, reached.get(id) ?? [], report);
    const ends = await readEnds(trx, id);
    const walked = await walk(trx, ends, checkpoints, report);
    checkEnds({ ...ends, events: walked.events }, checkpoints, nowMs, report);
    events += walked.events;
    chains.push({
      organizationId: id,
      isStored: ends.head !== undefined || walked.events > 0 || reached.has(id),
      firstMs: walked.firstMs,
      checkpoints: checkpoints.length,
    });
  }
  return { events, chains };
}

async function walk(
  trx: Transaction,
  ends: ChainEnds,
  checkpoints: readonly Checkpoint[],
  report: Verification['report'],
): Promise<{ readonly events: number; readonly firstMs: number | undefined }> {
  const { organizationId } = ends;
  // One event can have several checkpoints, for example when a rewritten event was signed again.
  const bySeq = Map.groupBy(checkpoints, ({ seq }) => seq);
  const chain = new ChainWalk(ends, report);
  let events = 0;
  let firstMs: number | undefined;
  for await (const link of readLinks(trx, organizationId)) {
    // A time that an attacker set to infinity is as old as can be.
    if (events === 0) firstMs = Number(link.timeMs) || 0;
    events += 1;
    chain.accept(link);
    const hash = link.hash.toString('hex');
    if (bySeq.get(link.seq)?.some((checkpoint) => checkpoint.hash !== hash) === true)
      report(rewritten(organizationId, link.seq, link.id));
  }
  chain.finish();
  return { events, firstMs };
}

/** From the heads, and from events whose head is missing. */
async function readOrganizations(trx: Transaction): Promise<readonly string[]> {
  const heads = await trx.selectFrom('audit_heads').select('organization_id').execute();
  const found = heads.map(({ organization_id }) => organization_id);
  for (let at: string | undefined; ; ) {
    let rest = trx.selectFrom('audit_events').select('organization_id');
    if (at !== undefined) rest = rest.where('organization_id', '>', at);
    const next = await rest.orderBy('organization_id').limit(1).executeTakeFirst();
    if (next === undefined) return found;
    at = next.organization_id;
    found.push(at);
  }
}

async function readEnds(trx: Transaction, organizationId: string): Promise<ChainEnds> {
  const head = await trx
    .selectFrom('audit_heads')
    .select(['seq', 'hash', 'floor_seq', 'floor_hash'])
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
  if (head === undefined) return { organizationId, floor: { seq: 0n, hash: genesis }, head: undefined };
  return {
    organizationId,
    floor: { seq: BigInt(head.floor_seq), hash: head.floor_hash },
    head: { seq: BigInt(head.seq), hash: head.hash },
  };
}

type LinkRow = Omit<Link, 'organizationId' | 'seq'> & { readonly seq: string };

// A cursor returns each row once, even when the unique constraint on the numbers was dropped. An attacker may have set any
// column to null, so nulls are replaced by values that no hashed event has: a null number, which sorts last, by the smallest
// bigint. Only the workspace may be null in an event.
async function* readLinks(trx: Transaction, organizationId: string): AsyncIterable<Link> {
  await sql`declare audit_links no scroll cursor for
    select coalesce(seq, -9223372036854775808)::text as seq,
      coalesce(id, '00000000-0000-0000-0000-000000000000') as id,
      case when isfinite(time) then trunc(extract(epoch from time) * 1000)::text else 'none' end as "timeMs",
      coalesce(operation, '') as operation, workspace_id as "workspaceId", coalesce(record, '') as record,
      coalesce(previous_hash, '') as "previousHash", coalesce(hash, '') as hash
    from audit_events event where organization_id = ${organizationId} order by event.seq`.execute(trx);
  const page = sql<LinkRow>`fetch ${sql.lit(PAGE)} from audit_links`;
  for (;;) {
    const { rows } = await page.execute(trx);
    for (const row of rows) yield { ...row, organizationId, seq: BigInt(row.seq) };
    if (rows.length < PAGE) break;
  }
  await sql`close audit_links`.execute(trx);
}
