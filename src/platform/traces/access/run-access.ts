// Who sends runs: a caller with the permission, or the runner of a deployment, which has a token for that and for nothing else.
import { DomainError } from '../../../base/domain-error.ts';
import { type Access, credentialsOf, inWorkspace, type WorkspaceGrant } from '../../api/access.ts';
import { hasKeyFormat, hashKey } from '../../identity/api-key.ts';
import type { Database } from '../../store/database.ts';
import '../contract.ts';

/** What the token of a deployment gives access to. */
export type DeploymentGrant = {
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly deploymentId: string;
  /** Of its tracing project, the only one that it sends runs to. */
  readonly ownProject: string;
};

export type Sender = WorkspaceGrant | DeploymentGrant;

const members = inWorkspace('runs:create');

export const fromRunSenders: Access<Sender> = {
  to: members.to,
  permission: 'runs:create',
  schemes: members.schemes,
  parameters: members.parameters,
  async enter(entry) {
    const token = tokenOf(entry);
    if (token === undefined) return members.enter(entry);
    const { db, authenticator, peer } = entry;
    try {
      return await authenticate(db, token);
    } catch (error) {
      throw error instanceof DomainError ? authenticator.countFailure(peer, error) : error;
    }
  },
  async confirm(entry, granted) {
    const token = tokenOf(entry);
    if (token === undefined && !isOfDeployment(granted)) return members.confirm(entry, granted);
    return authenticate(entry.db, token ?? '');
  },
  confirmsAtOnce: (granted) => !isOfDeployment(granted) && members.confirmsAtOnce?.(granted) === true,
  callerOf: (granted) =>
    isOfDeployment(granted) ? `deployment ${granted.deploymentId}` : members.callerOf(granted),
};

function isOfDeployment(granted: Sender): granted is DeploymentGrant {
  return 'deploymentId' in granted;
}

/** Beside an Authorization field it is not looked at: two credentials are for one caller, or for none. */
function tokenOf(entry: Parameters<typeof credentialsOf>[0]): string | undefined {
  const { apiKey, bearer } = credentialsOf(entry);
  return apiKey !== undefined && bearer === undefined && hasKeyFormat(apiKey, 'trace') ? apiKey : undefined;
}

/** In a transaction it locks the token: the deletion of the deployment waits for the runs that are being written. */
async function authenticate(db: Database, token: string): Promise<DeploymentGrant> {
  const row = await db
    .selectFrom('trace_tokens as t')
    .innerJoin('workspaces as w', 'w.id', 't.workspace_id')
    .innerJoin('deployments as d', 'd.id', 't.deployment_id')
    .select(['w.organization_id', 't.workspace_id', 't.deployment_id', 'd.name'])
    .where('t.hash', '=', hashKey(token))
    .where('d.status', '<>', 'AWAITING_DELETE')
    .$if(db.isTransaction, (query) => query.forKeyShare(['w', 't']))
    .executeTakeFirst();
  if (row === undefined) throw new DomainError('unauthenticated', 'This token sends no runs any more');
  return {
    ...{ organizationId: row.organization_id, workspaceId: row.workspace_id },
    ...{ deploymentId: row.deployment_id, ownProject: row.name },
  };
}
