// The database of one deployment, there and reachable: planned in our own database, created on the server, and open for its agent servers
// by a bridge. Whatever of it an earlier process has done, this begins from there.
import { join } from 'node:path';
import type { Log } from '../../../base/log.ts';
import {
  type DeploymentDatabase,
  noteDatabase,
  planDatabase,
} from '../../deployments/deployment-databases.ts';
import type { SecretOwner } from '../../deployments/deployment-secrets.ts';
import type { Connection, Store } from '../../store/database.ts';
import type { Vault } from '../../vault/vault.ts';
import { type DatabaseBridge, openDatabaseBridge } from '../database-bridge/bridge.ts';
import type { ConnectionBudget } from '../database-bridge/connection-budget.ts';
import type { AgentSecrets } from '../instances/agent-input.ts';
import { forgetServerDatabase, noteServerDatabase } from './leftover-databases.ts';
import type { DatabaseSizes } from './database-sizes.ts';
import type { StartTurns } from '../fleet/start-turns.ts';
import { createSizeLimit } from './size-limit.ts';
import { createVerifier } from './scram-verifier.ts';
import { createServerDatabase, dropServerDatabase, namesOf } from './server-databases.ts';

export type DatabaseParts = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly vault: Vault;
  /** Of the tables of the platform; may create databases and roles. */
  readonly owner: Connection;
  /** Of all deployments. */
  readonly connections: ConnectionBudget;
  readonly sizes: DatabaseSizes;
  /** Of one database. */
  readonly maxBytes: number;
  /** In which databases are kept to it. */
  readonly limitTurns: StartTurns;
  /** Has a directory for the socket of each deployment. */
  readonly directory: string;
  readonly log: Pick<Log, 'warn' | 'info'>;
};

export type OpenDatabase = {
  /** For agent servers. */
  readonly secrets: AgentSecrets['database'] & { readonly masterKey: DeploymentDatabase['masterKey'] };
  readonly bridge: Pick<DatabaseBridge, 'close'>;
};

/**
 * Undefined: the deployment is gone. `isMade`: it was made before, and is not looked at again. `groupId`: who may use its socket besides
 * this user. Throws a NotPermitted.
 */
export async function openDeploymentDatabase(
  parts: DatabaseParts,
  owner: SecretOwner,
  given: { readonly isMade: boolean; readonly groupId: number | undefined },
): Promise<OpenDatabase | undefined> {
  const { store, connections } = parts;
  const planned = await planDatabase(parts, owner);
  if (planned === undefined) return undefined;
  const { deploymentId } = owner;
  const { databaseName, roleName, password, masterKey } = planned;
  if (!given.isMade) {
    await noteServerDatabase(store.db, databaseName, deploymentId);
    const verifier = await createVerifier(password);
    const names = { database: databaseName, role: roleName };
    await createServerDatabase(parts.owner, names, { verifier, maxConnections: connections.perDeployment });
    await noteDatabase(store, deploymentId);
  }
  const directory = databaseDirectoryOf(parts, deploymentId);
  const bridge = await openDatabaseBridge({
    ...{ directory, connections, log: parts.log, groupId: given.groupId },
    ...{ user: roleName, database: databaseName, server: parts.owner },
    ...routingOf(parts.owner),
  });
  const limit = createSizeLimit({
    ...{ maxBytes: parts.maxBytes, owner: parts.owner, turns: parts.limitTurns, log: parts.log },
    login: { database: databaseName, user: roleName, password },
    refuseAll: (reason) => bridge.refuseAll(reason),
  });
  const endWatch = parts.sizes.watch(databaseName, (bytes) => limit.take(bytes));
  const close = async (): Promise<void> => {
    endWatch();
    limit.close();
    await bridge.close();
  };
  return {
    bridge: { close },
    secrets: { directory, name: databaseName, user: roleName, password, masterKey },
  };
}

/** Of the socket. As short as possible: the kernel limits the path. */
export function databaseDirectoryOf(
  { directory }: Pick<DatabaseParts, 'directory'>,
  deploymentId: string,
): string {
  return join(directory, deploymentId.replaceAll('-', '').slice(0, 16));
}

/** Resolves when neither the database nor the role is left. */
export async function dropDeploymentDatabase(
  { store, owner }: Pick<DatabaseParts, 'store' | 'owner'>,
  deploymentId: string,
): Promise<void> {
  const names = namesOf(deploymentId);
  await dropServerDatabase(owner, names);
  await forgetServerDatabase(store.db, names.database);
}

/** The options of DATABASE_URL are those by which a provider finds the server. */
function routingOf({ options }: Connection): { readonly routing?: string } {
  return options === undefined ? {} : { routing: options };
}
