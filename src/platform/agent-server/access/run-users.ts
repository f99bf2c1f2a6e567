// Who asked for a run that has not ended: what the authentication returned and the request sent, sealed for that run alone. It
// may hold tokens of the user, so it is nowhere else, and is deleted with the end of the run.
import { createHash } from 'node:crypto';
import type { AgentUser } from '../../../agent-worker/protocol/calls.ts';
import { Secret } from '../../../base/secret.ts';
import type { Database, Reader, Transaction } from '../../store/database.ts';
import { defineRead, defineStatement } from '../../store/statement.ts';
import type { SealedPlace, Vault } from '../../vault/vault.ts';
import { AGENT_WORKSPACE_ID } from '../configuration/settings.ts';

export type RunUser = {
  /** Undefined without a handler and without a key. */
  readonly user?: AgentUser | undefined;
  /** Fields of the request for `configurable`. */
  readonly headers: Readonly<Record<string, string>>;
};

/** In the transaction that creates the run; `vault.prepare()` comes before it. Its first statement may be held back. */
export function sealRunUser(
  trx: Transaction,
  vault: Pick<Vault, 'seal'>,
  runId: string,
  mapping: RunUser,
): Promise<Buffer> {
  return vault.seal(trx, placeOf(runId), new Secret(JSON.stringify(mapping)));
}

/** Every run has a user, also an empty one. It is the last statement of the transaction, and is sent with the COMMIT. */
export async function insertRunUser(db: Database, runId: string, sealed: Buffer): Promise<void> {
  await insertUser(db, { runId, sealed });
}

/** Users share the places of a process: whose run it is, without saying who. */
export function partyOf({ user }: RunUser): string {
  return user === undefined
    ? ''
    : createHash('sha256').update(user.identity).digest('base64url').slice(0, 22);
}

/**
 * When the run starts. Undefined: there is none, or it does not open. The run must then end as `error`: without its user it
 * might do what that user may not.
 */
export async function openRunUser(
  db: Reader,
  vault: Pick<Vault, 'unsealValue'>,
  runId: string,
): Promise<RunUser | undefined> {
  const [row] = await findUser(db, { runId });
  const opened = row && (await vault.unsealValue(db, placeOf(runId), row.sealed));
  return opened && (JSON.parse(opened.reveal()) as RunUser);
}

/** In the transaction that ends the run. */
export async function deleteRunUser(db: Database, runId: string): Promise<void> {
  await deleteUser(db, { runId });
}

/** Bytes that are moved to another run do not open. */
function placeOf(runId: string): SealedPlace {
  return { workspaceId: AGENT_WORKSPACE_ID, purpose: 'agent_run_user', name: runId, version: 1 };
}

type OfRun = { readonly runId: string };

const insertUser = defineStatement(
  'insert-agent-run-user',
  (db, { runId, sealed }: OfRun & { readonly sealed: Buffer }) =>
    db.insertInto('agent_run_users').values({ run_id: runId, sealed }).compile(),
  { isSentWithCommit: true },
);

const findUser = defineRead('find-agent-run-user', (db, { runId }: OfRun) =>
  db.selectFrom('agent_run_users').select('sealed').where('run_id', '=', runId).compile(),
);

const deleteUser = defineStatement('delete-agent-run-user', (db, { runId }: OfRun) =>
  db.deleteFrom('agent_run_users').where('run_id', '=', runId).compile(),
);
