// Signs the heads of all chains that have grown and writes them outside the database. Any process may do this at any
// time: two processes with the same key may write the same checkpoint twice, and each key has a series of its own.
import { createPublicKey, type KeyObject } from 'node:crypto';
import type { Store } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { type Checkpoint, fingerprintOf, signCheckpoint } from './checkpoint.ts';
import type { CheckpointSink } from './checkpoint-sink.ts';

const PAGE = 500;
/** Before every organization in the order of ids. */
const NO_ORGANIZATION = '00000000-0000-0000-0000-000000000000';

/** Returns the number of checkpoints that were written. After a failure the next call writes the rest. */
export async function writeCheckpoints(store: Store, sink: CheckpointSink, key: KeyObject): Promise<number> {
  const signer = fingerprintOf(createPublicKey(key));
  let written = 0;
  for (let at = NO_ORGANIZATION; ; ) {
    const checkpoints = await readGrown(store, signer, at);
    const last = checkpoints.at(-1);
    if (last === undefined) return written;
    await sink.append(checkpoints.map((checkpoint) => signCheckpoint(checkpoint, key)));
    await storeReached(store, signer, checkpoints);
    written += checkpoints.length;
    at = last.organization;
  }
}

/** Only heads that agree with their last event: a signature must not vouch for any other. */
async function readGrown({ db }: Store, signer: string, after: string): Promise<readonly Checkpoint[]> {
  const rows = await db
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
    .select(['head.organization_id as organization', 'head.seq', 'head.hash', 'event.time', 'unsigned.since'])
    .select(sql<string>`coalesce(checkpoint.seq, 0)`.as('after'))
    .where('head.organization_id', '>', after)
    .where(sql<boolean>`head.seq > coalesce(checkpoint.seq, 0)`)
    .orderBy('head.organization_id')
    .limit(PAGE)
    .execute();
  return rows.map((row) => ({
    organization: row.organization,
    seq: BigInt(row.seq),
    hash: row.hash.toString('hex'),
    time: row.time.getTime(),
    after: BigInt(row.after),
    since: row.since.getTime(),
  }));
}

async function storeReached({ db }: Store, signer: string, checkpoints: readonly Checkpoint[]) {
  const ids = checkpoints.map(({ organization }) => organization);
  const seqs = checkpoints.map(({ seq }) => String(seq));
  await sql`select public.audit_checkpointed(moved.id, ${signer}, moved.seq)
    from unnest(${ids}::uuid[], ${seqs}::bigint[]) as moved (id, seq)`.execute(db);
}
