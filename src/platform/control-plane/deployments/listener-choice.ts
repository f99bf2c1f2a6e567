// The listener that a deployment names: one of its workspace, which serves the namespace.
import { DomainError } from '../../../base/domain-error.ts';
import type { SourceConfig } from '../../deployments/deployment-rows.ts';
import type { Transaction } from '../../store/database.ts';

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

type Chosen = {
  readonly listener_id?: SourceConfig['listener_id'] | undefined;
  readonly listener_config?: { readonly k8s_namespace?: string | null | undefined } | null | undefined;
};

/** Throws `unusable`. The listener cannot be deleted until the commit. */
export async function requireListener(
  trx: Transaction,
  workspaceId: string,
  { listener_id: id, listener_config: config }: Chosen,
): Promise<void> {
  if (id === null || id === undefined) return;
  const listener = UUID.test(id) ? await findListener(trx, workspaceId, id) : undefined;
  if (listener === undefined)
    throw new DomainError(
      'unusable',
      'source_config.listener_id: there is no such listener in this workspace: see GET /v2/listeners',
    );
  const namespace = config?.k8s_namespace;
  const served = listener.compute_config.k8s_namespaces;
  if (!namespace || !served || served.includes(namespace)) return;
  throw new DomainError(
    'unusable',
    'source_config.listener_config.k8s_namespace: the listener does not serve it: see its compute_config.k8s_namespaces',
  );
}

async function findListener(trx: Transaction, workspaceId: string, id: string) {
  return trx
    .selectFrom('listeners')
    .select('compute_config')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .forKeyShare()
    .executeTakeFirst();
}
