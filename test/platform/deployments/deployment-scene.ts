// A database with workspaces, and rows of deployments in it, for tests of what reads and moves them.
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type {
  DeploymentStatus,
  SourceConfig,
  SourceRevisionConfig,
} from '../../../src/platform/deployments/deployment-rows.ts';
import type { RevisionStatus } from '../../../src/platform/deployments/revision-states.ts';
import { registerRunner } from '../../../src/platform/deployments/runners.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createMasterKeys } from '../../../src/platform/vault/master-key-registry.ts';
import { createVault, type Vault } from '../../../src/platform/vault/vault.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';
import { insertOrganization, insertWorkspace } from '../identity/test-rows.ts';

export type Deployment = {
  readonly id: string;
  readonly workspaceId: string;
  readonly organizationId: string;
  readonly name: string;
};
export type TestRunner = { readonly id: string; readonly machineId: string };

export type DeploymentScene = AsyncDisposable & {
  readonly database: TestDatabase;
  readonly vault: Vault;
  addWorkspace(): Promise<{ readonly organizationId: string; readonly workspaceId: string }>;
  /** In a workspace of its own, unless one is given. */
  addDeployment(options?: {
    readonly workspaceId?: string;
    readonly status?: DeploymentStatus;
  }): Promise<Deployment>;
  addRevision(deployment: Deployment, options?: RevisionOptions): Promise<string>;
  /** The object path of a source that is there. */
  addSource(deployment: Deployment, machineId?: string | null): Promise<string>;
  addRunner(machineId?: string): Promise<TestRunner>;
  /** As if it had not been seen for so long. */
  age(runnerId: string, seconds: number): Promise<void>;
};

export type RevisionOptions = {
  readonly status?: RevisionStatus;
  readonly config?: SourceConfig;
  readonly source?: SourceRevisionConfig;
  readonly secretsVersion?: number;
};

export async function createDeploymentScene(): Promise<DeploymentScene> {
  const [database, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
  const { store } = database;
  const masterKeyFile = join(scratch.path, 'vault-master.key');
  await createMasterKeys(store, { masterKeyFile, isProvided: false });
  const addWorkspace = async () => {
    const organizationId = await insertOrganization(store.db);
    return { organizationId, workspaceId: await insertWorkspace(store.db, organizationId) };
  };
  const organizationOf = async (workspaceId: string): Promise<string> => {
    const row = store.db.selectFrom('workspaces').select('organization_id').where('id', '=', workspaceId);
    return (await row.executeTakeFirstOrThrow()).organization_id;
  };
  return {
    database,
    vault: createVault({ masterKeyFile }),
    addWorkspace,
    async addDeployment({ workspaceId, status = 'READY' } = {}) {
      const id = randomUUID();
      const owner = workspaceId ?? (await addWorkspace()).workspaceId;
      const name = `app-${id}`;
      const configs = { source_config: '{}', source_revision_config: '{}', secret_references: '[]' };
      const nothing = { display_name: null, status_reason: null, image_version: null, listener_id: null };
      const absent = { proxy_profile_id: null, latest_revision_id: null, active_revision_id: null };
      const row = { id, workspace_id: owner, name, source: 'internal_source', status } as const;
      await store.db
        .insertInto('deployments')
        .values({ ...row, ...configs, ...nothing, ...absent, runner_id: null })
        .execute();
      return { id, name, workspaceId: owner, organizationId: await organizationOf(owner) };
    },
    async addRevision({ id, workspaceId }, options = {}) {
      const { status = 'QUEUED', config = {}, source = {}, secretsVersion = 0 } = options;
      const number = sql<number>`(select count(*) + 1 from revisions where deployment_id = ${id})`;
      const row = { workspace_id: workspaceId, deployment_id: id, number, status, build_id: null };
      const configs = {
        source_config: JSON.stringify(config),
        source_revision_config: JSON.stringify(source),
      };
      const inserted = await store.db
        .insertInto('revisions')
        .values({ ...row, ...configs, source: 'internal_source', secrets_version: secretsVersion })
        .returning('id')
        .executeTakeFirstOrThrow();
      return inserted.id;
    },
    async addSource({ id, workspaceId }, machineId = null) {
      const path = `${workspaceId}/${id}/${randomUUID()}`;
      const row = {
        workspace_id: workspaceId,
        deployment_id: id,
        state: 'stored',
        machine_id: machineId,
      } as const;
      const paths = { object_path: path, stored_path: `${path}/stored`, token_hash: randomBytes(32) };
      await store.db
        .insertInto('deployment_uploads')
        .values({ ...row, ...paths, size_bytes: '1', sha256: 'ab', expires_at: new Date() })
        .execute();
      return path;
    },
    async addRunner(machineId = randomUUID()) {
      const id = randomUUID();
      await registerRunner(store.db, { id, machineId, host: 'host', pid: 1 });
      return { id, machineId };
    },
    async age(runnerId, seconds) {
      await store.db
        .updateTable('runners')
        .set({ seen_at: sql<Date>`now() - make_interval(secs => ${seconds})` })
        .where('id', '=', runnerId)
        .execute();
    },
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}
