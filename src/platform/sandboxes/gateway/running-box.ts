// The box that a request is for, once it runs. One that stopped is started, by the request of a caller who may start it; whoever comes
// meanwhile waits for the same start.
import { DomainError } from '../../../base/domain-error.ts';
import { refuse } from '../../../gateway/refusal.ts';
import { type Access, type WorkspaceGrant } from '../../api/access.ts';
import { type Admission, type Applicant, partyOf, toEntry } from '../../api/shares/admission.ts';
import { type AuditEntry, appendWithCommit } from '../../audit/journal.ts';
import { requirePermission } from '../../identity/authorization.ts';
import type { Database, Store } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { BoxChanges } from '../box-changes.ts';
import { type BoxWriting, startBox } from '../box-writing.ts';
import { type BoxRow, lockBox, noBox } from '../boxes.ts';
import { lockUsage } from '../sizes/quotas.ts';
import { type BoxUse, USE_SECONDS } from './box-use.ts';
import { Refused } from './refusals.ts';

/** Who asks for which box. */
export type Wanted = {
  readonly id: string;
  /** For the audit log: the path of the request without what a caller may have written into it. */
  readonly path: string;
  readonly method: string;
  readonly access: Access<WorkspaceGrant>;
  readonly granted: WorkspaceGrant;
  readonly applicant: Applicant;
  /** Aborts when the client has left, and when the caller has lost the access. */
  readonly signal: AbortSignal;
};

export type RunningBoxParts = {
  readonly admission: Admission;
  readonly writing: Pick<BoxWriting, 'quotas'>;
  readonly changes: BoxChanges;
  readonly use: Pick<BoxUse, 'touch'>;
  readonly machineId: string;
  readonly startWaitMs: number;
};

/** Resolves when the box runs on this machine, and has been used just now. Throws a DomainError, or Refused. */
export async function untilRunning(parts: RunningBoxParts, wanted: Wanted): Promise<void> {
  const { admission, changes, startWaitMs: ms } = parts;
  const { access, granted, id, signal } = wanted;
  const party = partyOf(access, granted);
  if (party === undefined) throw new Error('a request for a box without an organization');
  const { db } = admission.shares.reads(party);
  let hasStarted = false;
  const look = async (): Promise<true | undefined> => {
    const box = await readBox(db, wanted);
    requireHere(box, parts);
    if (box.desired === 'stopped') {
      // Once: whoever stops it again while this request waits has the last word.
      if (hasStarted) throw new DomainError('not_ready', 'The sandbox was stopped');
      hasStarted = true;
      await start(parts, wanted, admission.shares.writes(party));
      return undefined;
    }
    if (box.status !== 'ready') return undefined;
    return !box.is_due || (await parts.use.touch(id)) ? true : undefined;
  };
  const isRunning = await changes.waitFor(id, look, { ms, signal });
  if (isRunning !== true) throw new DomainError('unavailable', NOT_YET, RETRY_MS);
}

const NOT_YET = 'The sandbox does not run yet: try again';
const RETRY_MS = 1_000;

type SeenBox = Pick<BoxRow, 'status' | 'status_message' | 'desired' | 'machine_id' | 'runtime'> & {
  readonly is_due: boolean;
};

/** In the workspace of the caller: one of another workspace is looked for and missed as any other id is. */
async function readBox(db: Pick<Database, 'selectFrom'>, { id, granted }: Wanted): Promise<SeenBox> {
  return db
    .selectFrom('boxes')
    .select(['status', 'status_message', 'desired', 'machine_id', 'runtime'])
    .select(sql<boolean>`active_at < now() - make_interval(secs => ${USE_SECONDS})`.as('is_due'))
    .where('workspace_id', '=', granted.workspaceId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(noBox);
}

/** Before anything is started for the request. */
function requireHere(box: SeenBox, { machineId }: RunningBoxParts): void {
  if (box.status === 'deleting') throw new DomainError('not_ready', 'The sandbox is being deleted');
  if (box.runtime === 'attached') throw new DomainError('not_supported', ATTACHED);
  if (box.machine_id !== null && box.machine_id !== machineId)
    throw new Refused(refuse('misdirected', { message: ELSEWHERE, name: 'Misdirected' }));
  if (box.status === 'failed' && box.desired === 'running')
    throw new DomainError('not_ready', `The sandbox failed: ${box.status_message ?? 'no reason is known'}`);
}

const ATTACHED = 'This sandbox is run by somebody else: its files and commands cannot be reached from here';
const ELSEWHERE = 'This sandbox is on another machine: send the request to its dataplane_url';

/** In one transaction with its audit event, which is that of a start by the API. Nothing where another request was first. */
async function start(parts: RunningBoxParts, wanted: Wanted, store: Store): Promise<void> {
  const { admission, writing, changes } = parts;
  const { access, applicant, granted, id } = wanted;
  requirePermission(granted.permissions, 'sandboxes:manage');
  await store.write(async (trx) => {
    const entry = toEntry(applicant, { db: trx, authenticator: admission.authenticator });
    const { caller, workspaceId, permissions } = await access.confirm(entry, granted);
    requirePermission(permissions, 'sandboxes:manage');
    // In the order of all writes, or two of them wait for each other.
    await lockUsage(trx, workspaceId);
    const { desired } = await lockBox(trx, { workspaceId, box: id });
    if (desired === 'running') return;
    const box = await startBox(writing, { db: trx, workspaceId, caller, box: id }, 'data_plane_request');
    await appendWithCommit(trx, toAuditEntry(wanted, box));
  });
  changes.emit(id);
}

function toAuditEntry({ granted, applicant, path, method }: Wanted, { id, name }: BoxRow): AuditEntry {
  const { caller, organizationId, workspaceId } = granted;
  return {
    ...{ operation: 'start_sandbox', organizationId, workspaceId, isSuccess: true },
    ...{ userId: caller.userId, keyId: caller.keyId, issuedBy: caller.issuedBy },
    ...{ resources: [id], resourceNames: [name] },
    request: {
      ...{ method, path, id: applicant.requestId },
      ...{ clientHost: applicant.client.host, clientPort: applicant.client.port },
      forwardedFor: applicant.head.field('x-forwarded-for'),
    },
  };
}
