// The files of all migrations, in the folders of what they belong to. A list of its own: a program that serves no requests reads it
// without loading the modules. A new migration adds one line here; two changes that take the same number meet in it.
import { type Migration, readMigrations } from './store/migration.ts';

const FILES: readonly string[] = [
  'store/migrations/0001-identity',
  'store/migrations/0002-audit',
  'control-plane/migrations/0003-listeners',
  'sandbox-records/migrations/0004-sandbox-records',
  'store/migrations/0005-audit-settling',
  'store/migrations/0006-key-makers',
  'store/migrations/0007-vault',
  'store/migrations/0008-audit-ids',
  'store/migrations/0009-home-workspaces',
  'store/migrations/0010-sessions',
  'store/migrations/0011-audit-filters',
  'workspace-secrets/migrations/0012-workspace-secrets',
  'proxy-profiles/migrations/0013-proxy-profiles',
  'sandboxes/migrations/0014-boxes',
  'sandboxes/migrations/0015-box-runtimes',
  'sandboxes/migrations/0016-profile-pushes',
  'sandboxes/migrations/0017-snapshots',
  'sandboxes/migrations/0018-box-gateways',
  'sandboxes/migrations/0019-service-tokens',
  'sandboxes/migrations/0020-asked-capacity',
  'agent-server/migrations/0021-agent-server',
  'control-plane/migrations/0022-deployments',
  'control-plane/migrations/0023-runner-databases',
  'agent-server/migrations/0024-agent-server-queue',
  'traces/migrations/0025-traces',
  'traces/migrations/0026-trace-order',
  'traces/migrations/0027-trace-tokens',
  'traces/migrations/0028-trace-days',
  'bulk-export/migrations/0029-export-destinations',
  'bulk-export/migrations/0030-exports',
  'bulk-export/migrations/0031-export-removals',
];

// The build copies these folders beside the bundle.
const inFolder = (file: string): URL => new URL(`./${file}.sql`, import.meta.url);

/** Of the tables below the modules: identity, the audit log and the vault. */
export const groundMigrations: readonly URL[] = FILES.filter((file) => file.startsWith('store/')).map(
  inFolder,
);

/**
 * All migrations, in the order in which they run, with those of the agent server: a program of its own, whose database has the
 * same schema, so that either program may migrate it. `more` are those of further modules.
 */
export function readAllMigrations(more: readonly URL[] = []): readonly Migration[] {
  return readMigrations([...FILES.map(inFolder), ...more]);
}
