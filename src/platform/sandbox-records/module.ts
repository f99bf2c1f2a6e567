// The records that sidecars send of their sandboxes, the tokens that they send them with, and the expiry of old records.
import type { Module } from '../module.ts';
import { expireSandboxRecords } from './record-expiry.ts';
import { sandboxRecordRoutes } from './record-routes.ts';

export const sandboxRecords: Module = {
  name: 'sandbox-records',
  routes: () => sandboxRecordRoutes,
  jobs: [expireSandboxRecords],
};
