// The list of modules, and what is made of it. A new module adds one line here; docs/modules.md lists what else it touches.
import { agentServer } from './agent-server/module.ts';
import type { Route } from './api/route.ts';
import { auditMaintenance } from './audit-maintenance/module.ts';
import { bulkExport } from './bulk-export/module.ts';
import { controlPlane } from './control-plane/module.ts';
import { management } from './management/module.ts';
import type { Module, Wiring } from './module.ts';
import { proxyProfiles } from './proxy-profiles/module.ts';
import { sandboxRecords } from './sandbox-records/module.ts';
import { sandboxes } from './sandboxes/module.ts';
import { signIn } from './sign-in/module.ts';
import { traces } from './traces/module.ts';
import { workspaceSecrets } from './workspace-secrets/module.ts';
import { groundMigrations } from './store/ground-migrations.ts';
import type { Job } from './store/job.ts';
import { type Migration, readMigrations } from './store/migration.ts';

/** They start in this order and close in the reverse order. */
export const modules: readonly Module[] = [
  auditMaintenance,
  management,
  signIn,
  controlPlane,
  sandboxRecords,
  workspaceSecrets,
  proxyProfiles,
  sandboxes,
  traces,
  bulkExport,
];

/** Without documents and probes, which belong to the server. */
export function createRoutes(wiring: Wiring, list: readonly Module[] = modules): readonly Route[] {
  return list.flatMap((module) => module.routes?.(wiring) ?? []);
}

export function jobsOf(list: readonly Module[] = modules): readonly Job[] {
  return list.flatMap(({ jobs = [] }) => jobs);
}

/**
 * All migrations, in the order in which they run, with those of the agent server: a program of its own, whose database has the
 * same schema, so that either program may migrate it.
 */
export function migrationsOf(list: readonly Module[] = modules): readonly Migration[] {
  const own = [...list, agentServer].flatMap(({ migrations = [] }) => migrations);
  return readMigrations([...groundMigrations, ...own]);
}
