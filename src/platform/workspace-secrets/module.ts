// The secrets of workspaces, which the rules of sandboxes name.
import type { Module } from '../module.ts';
import { createSecretRoutes } from './secret-routes.ts';

export const workspaceSecrets: Module = {
  name: 'workspace-secrets',
  routes: ({ vault }) => createSecretRoutes(vault),
};
