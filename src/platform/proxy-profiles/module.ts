// Proxy profiles: documents with rules of the proxy that several sandboxes of a workspace share.
import type { Module } from '../module.ts';
import { createProfileRoutes } from './profile-routes.ts';

export const proxyProfiles: Module = {
  name: 'proxy-profiles',
  routes: createProfileRoutes,
};
