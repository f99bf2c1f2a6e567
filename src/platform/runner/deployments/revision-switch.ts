// The switch of a deployment to another revision: its agent servers become ready beside those that serve, and only then it is deployed. A
// failure leaves everything as it was.
import { DomainError } from '../../../base/domain-error.ts';
import { moveRevision, SYSTEM } from '../../deployments/revision-moves.ts';
import type { RevisionStatus } from '../../deployments/revision-states.ts';
import type { WantedRevision } from '../../deployments/wanted-deployments.ts';
import type { DeploymentGround } from './deployment-ground.ts';
import type { RevisionFleet } from './revision-fleet.ts';

export type SwitchOutcome =
  | { readonly kind: 'deployed' | 'failed' | 'interrupted' }
  /** It waits for others to end. */
  | { readonly kind: 'no capacity'; readonly reason: string };

export type Switch = {
  readonly ground: DeploymentGround;
  readonly revision: WantedRevision;
  /** A newer revision came, or the deployment goes: its row says so already. */
  readonly signal: AbortSignal;
  open(): Promise<RevisionFleet>;
  /** From now on requests go to it. */
  onDeployed(fleet: RevisionFleet): void;
};

/** Rejects when the database does not respond: it is tried again then. */
export async function switchRevision(given: Switch): Promise<SwitchOutcome> {
  const beganMs = performance.now();
  const { ground, revision } = given;
  const opened = await open(given);
  if ('failed' in opened) return fail(given, opened.failed, beganMs);
  const outcome = await start(given, opened).catch(async (error: unknown) => {
    await close(opened);
    throw error;
  });
  if (outcome.kind === 'deployed') given.onDeployed(opened);
  else await opened.fleet.close(0);
  if (outcome.kind === 'failed') {
    const reason = [outcome.reason, ...opened.lastLines()].join('\n');
    opened.log.add({
      level: 'ERROR',
      message: `the revision ${revision.number} was not deployed: ${outcome.reason}`,
    });
    opened.log.close();
    return fail(given, reason, beganMs);
  }
  if (outcome.kind !== 'deployed') opened.log.close();
  if (outcome.kind !== 'no capacity') ground.events.onSwitched(outcome.kind, secondsSince(beganMs));
  return outcome;
}

type Started =
  | { readonly kind: 'deployed' | 'interrupted' }
  | { readonly kind: 'failed' | 'no capacity'; readonly reason: string };

async function start({ ground, revision, signal }: Switch, { fleet }: RevisionFleet): Promise<Started> {
  const reason = fleet.scaleTo(revision.minScale);
  if (reason !== undefined) return { kind: 'no capacity', reason };
  if (!(await move(ground, revision, 'DEPLOYING'))) return { kind: 'interrupted' };
  const failure = await whenReady(fleet, signal);
  if (signal.aborted) return { kind: 'interrupted' };
  if (failure !== undefined) return { kind: 'failed', reason: failure };
  return { kind: (await move(ground, revision, 'DEPLOYED')) ? 'deployed' : 'interrupted' };
}

type Opened = RevisionFleet | { readonly failed: string };

async function open({ open: openFleet }: Switch): Promise<Opened> {
  try {
    return await openFleet();
  } catch (error) {
    if (error instanceof DomainError && error.kind === 'unavailable') throw error;
    return { failed: error instanceof Error ? error.message : 'it could not be started' };
  }
}

async function whenReady(fleet: RevisionFleet['fleet'], signal: AbortSignal): Promise<string | undefined> {
  const interrupted = Promise.withResolvers<undefined>();
  const onAbort = (): void => interrupted.resolve(undefined);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  return Promise.race([fleet.whenReady(), interrupted.promise]);
}

/** What a revision that was moved before is in already. */
const FROM: Partial<Record<RevisionStatus, readonly RevisionStatus[]>> = {
  DEPLOYING: ['DEPLOYING', 'DEPLOYED'],
  DEPLOYED: ['DEPLOYED'],
};

/** False: it has ended in another way. */
async function move(
  { store }: Pick<DeploymentGround, 'store'>,
  { revisionId }: WantedRevision,
  to: 'DEPLOYING' | 'DEPLOYED',
): Promise<boolean> {
  return store.write(async (trx) => {
    if (await moveRevision(trx, { revisionId, to, actor: SYSTEM })) return true;
    const found = trx.selectFrom('revisions').select('status').where('id', '=', revisionId);
    const row = await found.executeTakeFirst();
    return row !== undefined && (FROM[to] ?? []).includes(row.status);
  });
}

const MAX_REASON = 2_000;

async function fail({ ground, revision }: Switch, reason: string, beganMs: number): Promise<SwitchOutcome> {
  const { revisionId } = revision;
  const shown = reason.slice(0, MAX_REASON);
  await ground.store.write((trx) =>
    moveRevision(trx, { revisionId, to: 'DEPLOY_FAILED', actor: SYSTEM, reason: shown }),
  );
  ground.events.onSwitched('failed', secondsSince(beganMs));
  return { kind: 'failed' };
}

function secondsSince(beganMs: number): number {
  return (performance.now() - beganMs) / 1000;
}

async function close({ fleet, log }: RevisionFleet): Promise<void> {
  await fleet.close(0);
  log.close();
}
