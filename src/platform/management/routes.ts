// The routes of management: the organization, its workspaces, who may do what there, by which keys, and what was done.
import type { Route } from '../api/route.ts';
import type { EntitlementDefaults } from '../identity/entitlement.ts';
import { createAuditLogRoutes } from './audit-log-routes.ts';
import { memberRoutes } from './member-routes.ts';
import { organizationRoutes } from './organization-routes.ts';
import { personalTokenRoutes } from './personal-token-routes.ts';
import { serviceKeyRoutes } from './service-key-routes.ts';
import { workspaceMemberRoutes } from './workspace-member-routes.ts';
import { workspaceRoutes } from './workspace-routes.ts';

export function createManagementRoutes(defaults: EntitlementDefaults): readonly Route[] {
  return [
    ...organizationRoutes,
    ...workspaceRoutes,
    ...memberRoutes,
    ...workspaceMemberRoutes,
    ...serviceKeyRoutes,
    ...personalTokenRoutes,
    ...createAuditLogRoutes(defaults),
  ];
}
