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
  /** Has a directory for the socket of each deployment. */
  readonly directory: string;
  readonly log: Pick<Log, 'warn'>;
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
  const endWatch = parts.sizes.watch(databaseName, (bytes) =>
    bridge.refuseAll(bytes > parts.maxBytes ? describeExcess(bytes, parts.maxBytes) : undefined),
  );
  const close = async (): Promise<void> => {
    endWatch();
    await bridge.close();
  };
  return {
    bridge: { close },
    secrets: { directory, name: databaseName, user: roleName, password, masterKey },
  };
}

const MIB = 1024 ** 2;

function describeExcess(bytes: number, maxBytes: number): string {
  const [has, may] = [bytes, maxBytes].map((one) => Math.ceil(one / MIB));
  return `the database of this deployment has ${has} MiB, more than the ${may} MiB of runner.limits.database_bytes: its operator can raise that, or delete the deployment`;
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
