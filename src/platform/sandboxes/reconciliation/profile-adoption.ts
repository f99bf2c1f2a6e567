// A proxy profile that was changed reaches each box that uses it: the document of the box is made anew, as by `refresh-secrets`, and
// applied as any other change. A box for which this cannot be done keeps the rules that it has, and says why.
import { DomainError, InvalidInput } from '../../../base/domain-error.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import type { Issue } from '../../../base/schema.ts';
import type { Reader, Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { announce } from '../box-moves.ts';
import type { PreparedPolicy } from '../box-policy.ts';
import { type BoxWriting, prepareRefresh, storePolicy } from '../box-writing.ts';
import type { BoxRow } from '../boxes.ts';
import type { MachineLease } from './lease.ts';

export type AdoptionParts = Pick<BoxWriting, 'secrets' | 'policies'> & {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly lease: Pick<MachineLease, 'fence'>;
  readonly log: Log;
};

/** Resolves with whether the box should be looked at again at once. */
export async function adoptProfile(parts: AdoptionParts, box: BoxRow, version: number): Promise<boolean> {
  const { store, lease } = parts;
  const prepared = await prepare(parts, box);
  return store.write(async (trx) => {
    await lease.fence(trx);
    const current = await lockUnchanged(trx, box);
    if (current === undefined) return true;
    const set = prepared.ok
      ? await storePolicy(parts, trx, current, { replaces: box, policy: prepared.policy })
      : problemOf(prepared.issues, version);
    await trx.updateTable('boxes').set(set).where('id', '=', box.id).execute();
    await announce(trx, box.id);
    return prepared.ok;
  });
}

type Prepared =
  | { readonly ok: true; readonly policy: PreparedPolicy }
  | { readonly ok: false; readonly issues: readonly Issue[] };

async function prepare(parts: AdoptionParts, box: BoxRow): Promise<Prepared> {
  const { secrets, store, log } = parts;
  try {
    await secrets.prepare();
    const db: Reader = store.db;
    const change = await prepareRefresh(parts, { db, workspaceId: box.workspace_id, box: box.id });
    if (change?.policy !== undefined) return { ok: true, policy: change.policy };
    throw new Error('a sandbox with a proxy profile has no rules');
  } catch (error) {
    if (error instanceof InvalidInput) return { ok: false, issues: error.issues };
    if (error instanceof DomainError) return { ok: false, issues: [atProfile(error.message)] };
    log.error({ ...describeBug(error), box: box.id }, 'a proxy profile could not be given to a sandbox');
    return { ok: false, issues: [atProfile(FAILED)] };
  }
}

const FAILED = 'The platform could not read what the rules need; it is tried again';
const MAX_ISSUES = 20;

function atProfile(msg: string): Issue {
  return { loc: ['body', 'proxy_profile_id'], msg, type: 'value_error' };
}

/** Undefined: a caller has changed its rules meanwhile, or deletes it. */
async function lockUnchanged(trx: Transaction, box: BoxRow): Promise<BoxRow | undefined> {
  return trx
    .selectFrom('boxes')
    .selectAll()
    .where('id', '=', box.id)
    .where('status', '<>', 'deleting')
    .where('policy_version', '=', box.policy_version)
    .forNoKeyUpdate()
    .executeTakeFirst();
}

/** A little earlier than it was: a secret that was being stored meanwhile is a reason to try again. */
function problemOf(issues: readonly Issue[], version: number) {
  return {
    profile_problem: JSON.stringify(issues.slice(0, MAX_ISSUES)),
    profile_tried_version: version,
    profile_tried_at: sql<Date>`now() - interval '10 seconds'`,
  };
}
