// Management: the organization, its workspaces, their members, API keys and the audit log.
import type { Module } from '../module.ts';
import { createAuditLogRoutes } from './audit-log-routes.ts';
import { keyRoutes } from './key-routes.ts';
import { memberRoutes } from './member-routes.ts';
import { createOrganizationRoutes } from './organization-routes.ts';
import { workspaceMemberRoutes } from './workspace-member-routes.ts';
import { workspaceRoutes } from './workspace-routes.ts';

export const management: Module = {
  name: 'management',
  routes: ({ config }) => [
    ...createOrganizationRoutes(config.defaultFeatures),
    ...workspaceRoutes,
    ...memberRoutes,
    ...workspaceMemberRoutes,
    ...keyRoutes,
    ...createAuditLogRoutes(config.defaultFeatures),
  ],
};
