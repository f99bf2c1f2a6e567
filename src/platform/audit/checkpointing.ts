// Has the heads of all chains that have moved signed and written outside the database. Any process may do it at any time:
// two with one key that meet write the same twice, and those with keys of their own each keep a row of checkpoints.
import { createPublicKey, type KeyObject } from 'node:crypto';
import type { Store } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { fingerprintOf, signCheckpoint } from './checkpoint.ts';
import type { CheckpointSink } from './checkpoint-sink.ts';

const PAGE = 500;
const NO_ORGANIZATION = '00000000-0000-0000-0000-000000000000';

type Head = {
  readonly organization_id: string;
  readonly seq: string;
  readonly hash: Buffer;
  readonly time: Date;
  readonly after: string;
  readonly since: Date;
};

/** Answers how many were written. A sink that fails leaves them to the next time. */
export async function writeCheckpoints(store: Store, sink: CheckpointSink, key: KeyObject): Promise<number> {
  const signer = fingerprintOf(createPublicKey(key));
  let written = 0;
  for (let at = NO_ORGANIZATION; ; ) {
    const heads = await readMoved(store, signer, at);
    const last = heads.at(-1);
    if (last === undefined) return written;
    await sink.append(heads.map((head) => signCheckpoint(toCheckpoint(head), key)));
    await remember(store, signer, heads);
    written += heads.length;
    at = last.organization_id;
  }
}

/** Only what agrees with its last event: for anything else nobody should vouch. */
async function readMoved({ db }: Store, signer: string, after: string): Promise<readonly Head[]> {
  return db
    .selectFrom('audit_heads as head')
    .innerJoin('audit_events as event', (join) =>
      join
        .onRef('event.organization_id', '=', 'head.organization_id')
        .onRef('event.seq', '=', 'head.seq')
        .onRef('event.hash', '=', 'head.hash'),
    )
    .leftJoin('audit_checkpoints as checkpoint', (join) =>
      join
        .onRef('checkpoint.organization_id', '=', 'head.organization_id')
        .on('checkpoint.signer', '=', signer),
    )
    .innerJoinLateral(
      (query) =>
        query
          .selectFrom('audit_events as first')
          .select('first.time as since')
          .whereRef('first.organization_id', '=', 'head.organization_id')
          .where(sql<boolean>`first.seq > coalesce(checkpoint.seq, 0)`)
          .orderBy('first.seq')
          .limit(1)
          .as('unsigned'),
      (join) => join.onTrue(),
    )
    .select(['head.organization_id', 'head.seq', 'head.hash', 'event.time', 'unsigned.since'])
    .select(sql<string>`coalesce(checkpoint.seq, 0)`.as('after'))
    .where('head.organization_id', '>', after)
    .where(sql<boolean>`head.seq > coalesce(checkpoint.seq, 0)`)
    .orderBy('head.organization_id')
    .limit(PAGE)
    .execute();
}

function toCheckpoint({
  organization_id,
  seq,
  hash,
  time,
  after,
  since,
}: Head): Parameters<typeof signCheckpoint>[0] {
  return {
    organizationId: organization_id,
    seq: BigInt(seq),
    hash: hash.toString('hex'),
    timeMs: time.getTime(),
    after: BigInt(after),
    sinceMs: since.getTime(),
  };
}

async function remember({ db }: Store, signer: string, heads: readonly Head[]): Promise<void> {
  const ids = heads.map(({ organization_id }) => organization_id);
  const seqs = heads.map(({ seq }) => seq);
  await sql`select public.audit_checkpointed(moved.id, ${signer}, moved.seq)
    from unnest(${ids}::uuid[], ${seqs}::bigint[]) as moved (id, seq)`.execute(db);
}
