// The list of modules, and what is made of it. A new module adds one line here; docs/modules.md lists what else it touches.
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
import type { Job } from './store/job.ts';

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
