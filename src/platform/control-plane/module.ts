// The control plane: the listeners that deployments run on.
import { mount } from '../api/contract/mount.ts';
import type { Module } from '../module.ts';
import { listenerRoutes } from './listener-routes.ts';

export const controlPlane: Module = {
  name: 'control-plane',
  routes: () => mount(listenerRoutes, { under: ['', '/api-host'] }),
  migrations: [new URL('./migrations/0003-listeners.sql', import.meta.url)],
};
