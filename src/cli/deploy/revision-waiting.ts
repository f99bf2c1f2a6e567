// Waits until a revision is deployed or has failed, and shows why it failed.
import { setTimeout as delay } from 'node:timers/promises';
import type { ControlPlane, Deployment, LogEntry, Revision } from './control-plane.ts';
import { escapeControls } from '../issue-lines.ts';
import { formatLogEntry, type Output } from './output.ts';
import { CallRejected } from './platform-call.ts';
import { callPatiently, type Wait } from './repeated-call.ts';

export type Waiting = {
  readonly output: Output;
  /** In place of real time. */
  readonly wait?: Wait;
  readonly now?: () => number;
};

const FIRST_POLL_MS = 250;
const MAX_POLL_MS = 3_000;
/** A build may take 15 minutes, and may wait for others before. */
const MAX_WAIT_MS = 30 * 60_000;
const SHOWN_LINES = 50;
/** As after a signal that ends a process. */
const INTERRUPTED = 130;

const REASONS: Readonly<Record<string, string>> = {
  SKIPPED: 'a newer revision came before work on it began',
  INTERRUPTED: 'a newer revision came during work on it, or the deployment was deleted',
  CREATE_FAILED: 'its source cannot be used',
  BUILD_FAILED: 'its build failed',
  DEPLOY_FAILED: 'it did not start; what was deployed before goes on',
};

/** For something of the deployment that its revisions do not say. */
const WAITING: ReadonlySet<string> = new Set(['QUEUED', 'AWAITING_DEPLOY']);
const PATIENCE_MS = 10_000;

/** Exit code 0 when it is deployed, 1 for every other end. */
export async function waitForRevision(
  plane: ControlPlane,
  { id, name }: Pick<Deployment, 'id' | 'name'>,
  revisionId: string,
  waiting: Waiting,
): Promise<number> {
  const { output } = waiting;
  const onInterrupt = (): void => {
    output.progress(`the revision goes on without this command: sallyport deploy revisions ${name}`);
    process.exit(INTERRUPTED);
  };
  process.once('SIGINT', onInterrupt);
  try {
    return await follow(plane, { id, name }, revisionId, waiting);
  } catch (error) {
    // It was there when the waiting began.
    if (!(error instanceof CallRejected) || error.status !== 404) throw error;
    output.progress(`the deployment ${name} was deleted meanwhile`);
    output.result({ deployment_id: id, name, revision_id: revisionId, status: 'INTERRUPTED', url: null }, []);
    return 1;
  } finally {
    process.off('SIGINT', onInterrupt);
  }
}

async function follow(
  plane: ControlPlane,
  { id, name }: Pick<Deployment, 'id' | 'name'>,
  revisionId: string,
  waiting: Waiting,
): Promise<number> {
  const { output } = waiting;
  const revision = await pollRevision(plane, id, revisionId, waiting);
  const status = revision?.status;
  if (revision === undefined) {
    const follow = `sallyport deploy logs ${name} --build --follow`;
    output.progress(`the revision is not done after ${MAX_WAIT_MS / 60_000} minutes, and goes on: ${follow}`);
  } else if (status !== 'DEPLOYED') await showFailure(plane, id, revision, output);
  const { source_config: config } = await plane.get(id);
  const url = config?.custom_url ?? null;
  const result = { deployment_id: id, name, revision_id: revisionId, status: status ?? 'UNKNOWN', url };
  output.result(result, status === 'DEPLOYED' ? [url ?? id] : []);
  return status === 'DEPLOYED' ? 0 : 1;
}

async function pollRevision(
  plane: ControlPlane,
  id: string,
  revisionId: string,
  { output, wait = delay, now = Date.now }: Waiting,
): Promise<Revision | undefined> {
  const until = now() + MAX_WAIT_MS;
  let last = '';
  let since = now();
  let shown: string | null | undefined;
  for (let pause = FIRST_POLL_MS; now() < until; pause = Math.min(pause * 1.5, MAX_POLL_MS)) {
    const revision = await callPatiently(() => plane.revision(id, revisionId), { wait, now });
    const { status } = revision;
    if (status !== last) output.progress(`revision ${revisionId}: ${status}`);
    if (status === 'DEPLOYED' || status in REASONS) return revision;
    if (status !== last) since = now();
    if (WAITING.has(status) && now() - since >= PATIENCE_MS) {
      const { status_reason: reason } = await callPatiently(() => plane.get(id), { wait, now });
      if (reason && reason !== shown) output.progress(`it waits: ${escapeControls(reason)}`);
      shown = reason;
    }
    last = status;
    await wait(pause);
  }
  return undefined;
}

async function showFailure(
  plane: ControlPlane,
  id: string,
  { id: revisionId, status, status_reason: reason }: Revision,
  output: Output,
): Promise<void> {
  const why = reason ? escapeControls(reason.split('\n')[0] ?? '') : (REASONS[status] ?? status);
  output.progress(`the revision is not deployed (${status}): ${why}`);
  const query = { limit: SHOWN_LINES, order: 'desc' } as const;
  let lines: readonly LogEntry[] = [];
  try {
    if (status === 'BUILD_FAILED' || status === 'CREATE_FAILED')
      lines = (await plane.buildLogs(id, revisionId, query)).logs;
    if (status === 'DEPLOY_FAILED') lines = (await plane.deployLogs(id, revisionId, query)).logs;
  } catch (error) {
    output.progress(`its log cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  for (const line of lines.toReversed()) output.progress(`  ${formatLogEntry(line)}`);
}
