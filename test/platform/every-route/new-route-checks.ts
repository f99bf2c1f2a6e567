// The generic tests for routes that a test brings: what a new module gets without a test of its own.
//
//   await using scene = await openNewRoutes({ routes, fixtures });   // or { modules, fixtures }
//   expect((await findDefects(scene, routes)).found).toEqual([]);
import type { Route } from '../../../src/platform/api/route.ts';
import type { Operation } from './document.ts';
import { findIdLeaks, findLeaks } from './foreign-callers.ts';
import { createHandleGuard, type HandleGuard } from './handle-guard.ts';
import { createProber } from './prober.ts';
import { createRoleCallers, findRoleDefects } from './role-callers.ts';
import {
  createExample,
  type EveryRoute,
  type EveryRouteOptions,
  adminOf,
  openEveryRoute,
  send,
  successOf,
} from './scene.ts';

export type NewRoutes = EveryRoute & { readonly guard: HandleGuard };

/** `fixtures` has a real value for each id that no other route has. */
export async function openNewRoutes(options: Omit<EveryRouteOptions, 'wrap'>): Promise<NewRoutes> {
  const guard = createHandleGuard();
  const scene = await openEveryRoute({ ...options, wrap: guard.wrap });
  return {
    ...{ ...scene, guard },
    async [Symbol.asyncDispose]() {
      guard[Symbol.dispose]();
      await scene[Symbol.asyncDispose]();
    },
  };
}

/** Once for a scene. Nothing is found when each route is described, served to its roles under all its paths, closed to all others, and fuzzed. */
export async function findDefects(
  scene: NewRoutes,
  routes: readonly Route[],
): Promise<{ readonly found: readonly unknown[]; readonly sent: number }> {
  let sent = 0;
  const found: unknown[] = [];
  const prober = await createProber(scene);
  const callers = await createRoleCallers(scene);
  for (const route of routes) {
    const operation = scene.operations.find((one) => isOf(one, route));
    if (operation === undefined) {
      found.push(`${route.method} ${route.path} is not in the document`);
      continue;
    }
    const swept = await prober.sweep(operation, 1);
    sent += swept.sent;
    found.push(...swept.found);
    found.push(...(await findUnauthenticated(scene, operation)));
    if (route.access.to === 'sandbox') continue;
    found.push(...(await findLeaks(scene, operation)));
    found.push(...(await findIdLeaks(scene, operation)).found);
    found.push(...(await findRoleDefects(scene, callers, operation)));
    found.push(...(await findAliasDefects(scene, operation)));
  }
  return { found: [...found, ...scene.guard.found], sent };
}

/** The route as it was given, or as the scene has wrapped it. */
function isOf({ method, path }: Operation, route: Route): boolean {
  return method === route.method && path === route.path;
}

/** Other paths that are not served as the first one. */
async function findAliasDefects({ api, a1 }: EveryRoute, operation: Operation): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  for (const path of operation.route.aliases ?? []) {
    const example = { ...(await createExample(api, operation, a1)), operation: { ...operation, path } };
    const { status, text } = await send(api, example, adminOf(operation, a1));
    if (status !== successOf(operation)) found.push([operation.method, path, status, text]);
  }
  return found;
}

async function findUnauthenticated(scene: EveryRoute, operation: Operation): Promise<readonly unknown[]> {
  const { api, a1, digest } = scene;
  if (operation.route.access.schemes.length === 0) return [];
  const example = await createExample(api, operation, a1);
  const before = JSON.stringify(await digest.take());
  const { status } = await send(api, example, {});
  const hasChanged = before !== JSON.stringify(await digest.take());
  return status === 401 && !hasChanged ? [] : [[operation.title, 'without a key', status, { hasChanged }]];
}
