// Every route of the platform, by resource. What a route needs besides the request is given here once.
import type { Route } from './api/route.ts';
import { listenerRoutes } from './control-plane/listener-routes.ts';
import type { EntitlementDefaults } from './identity/entitlement.ts';
import { createManagementRoutes } from './management/routes.ts';
import { sandboxRecordRoutes } from './sandbox-records/record-routes.ts';

/** Those that serve a resource; documents and probes are the server's. */
export function createResourceRoutes(defaults: EntitlementDefaults): readonly Route[] {
  return [...createManagementRoutes(defaults), ...listenerRoutes, ...sandboxRecordRoutes];
}
