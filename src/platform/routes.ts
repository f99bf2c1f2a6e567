// Every resource route of the platform, in one list.
import { mount } from './api/contract/mount.ts';
import type { Route } from './api/route.ts';
import { listenerRoutes } from './control-plane/listener-routes.ts';
import type { EntitlementDefaults } from './identity/entitlement.ts';
import { createManagementRoutes } from './management/routes.ts';
import { sandboxRecordRoutes } from './sandbox-records/record-routes.ts';

/** Without documents and probes, which belong to the server. */
export function createResourceRoutes(defaults: EntitlementDefaults): readonly Route[] {
  return [
    ...createManagementRoutes(defaults),
    ...mount(listenerRoutes, { under: ['', '/api-host'] }),
    ...sandboxRecordRoutes,
  ];
}
