// `sallyport deploy list`: each deployment with its newest revision. A deployment whose first build has failed is ready, and runs nothing:
// what is missing is said by that revision alone.
import { type ControlPlane, type Deployment, type Revision } from './control-plane.ts';
import { firstLineOf, formatTable, type Output } from './output.ts';
import { CallRejected } from './platform-call.ts';

export type ListedDeployment = Deployment & {
  /** Null: there is none any more. */
  readonly latest_revision: Pick<Revision, 'id' | 'status' | 'status_reason'> | null;
};

/** That are read at once. */
const CONCURRENCY = 8;
const HEAD: readonly string[] = [
  'NAME',
  'STATUS',
  'ACTIVE REVISION',
  'LATEST REVISION',
  'ID',
  'URL',
  'REASON',
];

export async function printDeployments(plane: ControlPlane, output: Output): Promise<void> {
  const all = await withRevisions(plane, await plane.list());
  const rows = all.map((one) => [
    ...[one.name, one.status ?? '-', one.active_revision_id ?? '-', one.latest_revision?.status ?? '-'],
    ...[one.id, one.source_config?.custom_url ?? '-', reasonOf(one)],
  ]);
  output.result(all, formatTable(HEAD, rows));
}

function reasonOf({ status_reason: reason, latest_revision: latest }: ListedDeployment): string {
  if (reason) return firstLineOf(reason);
  // Of one that waits, the deployment says what for.
  const isOver = latest !== null && /(?:FAILED|INTERRUPTED|SKIPPED|UNKNOWN)$/.test(latest.status);
  return isOver ? firstLineOf(latest.status_reason ?? '') : '';
}

async function withRevisions(
  plane: ControlPlane,
  all: readonly Deployment[],
): Promise<readonly ListedDeployment[]> {
  const found: ListedDeployment[] = [];
  for (let at = 0; at < all.length; at += CONCURRENCY) {
    const some = all.slice(at, at + CONCURRENCY);
    found.push(
      ...(await Promise.all(
        some.map(async (one) => ({ ...one, latest_revision: await readLatest(plane, one) })),
      )),
    );
  }
  return found;
}

async function readLatest(
  plane: ControlPlane,
  { id, latest_revision_id: latest, active_revision_id: active }: Deployment,
): Promise<ListedDeployment['latest_revision']> {
  if (!latest) return null;
  // It serves: there is nothing more to say of it.
  if (latest === active) return { id: latest, status: 'DEPLOYED', status_reason: null };
  try {
    const { status, status_reason } = await plane.revision(id, latest);
    return { id: latest, status, status_reason: status_reason ?? null };
  } catch (error) {
    // The deployment has gone meanwhile.
    if (error instanceof CallRejected && error.status === 404) return null;
    throw error;
  }
}
