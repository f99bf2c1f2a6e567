// The states of a revision, and every move between them. Pure.

export const revisionStatuses = [
  'CREATING',
  'QUEUED',
  'AWAITING_BUILD',
  'BUILDING',
  'AWAITING_DEPLOY',
  'DEPLOYING',
  'CREATE_FAILED',
  'BUILD_FAILED',
  'DEPLOY_FAILED',
  'DEPLOYED',
  'SKIPPED',
  'INTERRUPTED',
  'UNKNOWN',
] as const;
export type RevisionStatus = (typeof revisionStatuses)[number];

/** The archive is read by the builder, so that what is wrong with it is found while the revision is built. */
const MOVES: Readonly<Record<RevisionStatus, readonly RevisionStatus[]>> = {
  CREATING: ['QUEUED', 'CREATE_FAILED', 'SKIPPED'],
  // Images, and revisions whose build is kept, leave the build out.
  QUEUED: ['AWAITING_BUILD', 'AWAITING_DEPLOY', 'CREATE_FAILED', 'SKIPPED'],
  AWAITING_BUILD: ['BUILDING', 'CREATE_FAILED', 'BUILD_FAILED', 'SKIPPED'],
  BUILDING: ['AWAITING_DEPLOY', 'CREATE_FAILED', 'BUILD_FAILED', 'INTERRUPTED'],
  AWAITING_DEPLOY: ['DEPLOYING', 'DEPLOY_FAILED', 'SKIPPED', 'INTERRUPTED'],
  // Only with an agent of a listener: it has fallen silent.
  DEPLOYING: ['DEPLOYED', 'DEPLOY_FAILED', 'INTERRUPTED', 'UNKNOWN'],
  UNKNOWN: ['DEPLOYED', 'DEPLOY_FAILED', 'INTERRUPTED'],
  CREATE_FAILED: [],
  BUILD_FAILED: [],
  DEPLOY_FAILED: [],
  DEPLOYED: [],
  SKIPPED: [],
  INTERRUPTED: [],
};

export const pendingStatuses: readonly RevisionStatus[] = revisionStatuses.filter(
  (status) => !isTerminal(status),
);

/** A terminal state never changes. */
export function isTerminal(status: RevisionStatus): boolean {
  return MOVES[status].length === 0;
}

export function canMove(from: RevisionStatus, to: RevisionStatus): boolean {
  return MOVES[from].includes(to);
}

/**
 * Where a revision ends that is not wanted any more, because a newer one came or its deployment goes. Undefined: it has ended.
 * `wasBuilt`: work on it was done before it waited to be deployed.
 */
export function endOfUnwanted(
  status: RevisionStatus,
  { wasBuilt }: { readonly wasBuilt: boolean },
): 'SKIPPED' | 'INTERRUPTED' | undefined {
  if (isTerminal(status)) return undefined;
  if (status === 'AWAITING_DEPLOY') return wasBuilt ? 'INTERRUPTED' : 'SKIPPED';
  return WAITING.includes(status) ? 'SKIPPED' : 'INTERRUPTED';
}

const WAITING: readonly RevisionStatus[] = ['CREATING', 'QUEUED', 'AWAITING_BUILD'];
