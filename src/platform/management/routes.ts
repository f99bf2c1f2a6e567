// The routes of management: the organization, its workspaces, their members, API keys and the audit log.
import type { Route } from '../api/route.ts';
import type { EntitlementDefaults } from '../identity/entitlement.ts';
import { createAuditLogRoutes } from './audit-log-routes.ts';
import { keyRoutes } from './key-routes.ts';
import { memberRoutes } from './member-routes.ts';
import { organizationRoutes } from './organization-routes.ts';
import { workspaceMemberRoutes } from './workspace-member-routes.ts';
import { workspaceRoutes } from './workspace-routes.ts';

export function createManagementRoutes(defaults: EntitlementDefaults): readonly Route[] {
  return [
    ...organizationRoutes,
    ...workspaceRoutes,
    ...memberRoutes,
    ...workspaceMemberRoutes,
    ...keyRoutes,
    ...createAuditLogRoutes(defaults),
  ];
}
