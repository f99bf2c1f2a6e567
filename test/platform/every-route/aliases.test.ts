// Every other path of a route is served as the path that the document names: the same access, the same tenants, and the
// document and the log know one of them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Operation } from './document.ts';
import {
  createExample,
  type EveryRoute,
  type Example,
  adminOf,
  openEveryRoute,
  send,
  successOf,
} from './scene.ts';
import { idIn } from './foreign-callers.ts';

let scene: EveryRoute;
beforeAll(async () => {
  scene = await openEveryRoute();
});
afterAll(() => scene[Symbol.asyncDispose]());

/** Each operation under each of its other paths. */
function aliased(): readonly Operation[] {
  return scene.operations.flatMap((operation) =>
    (operation.route.aliases ?? []).map((path) => ({
      ...operation,
      path,
      title: `${operation.method} ${path}`,
    })),
  );
}

/** Its resources are those of the path in the document. */
async function createAliased(operation: Operation): Promise<Example> {
  const { path } = operation.route;
  return { ...(await createExample(scene.api, { ...operation, path }, scene.a1)), operation };
}

describe('every other path of a route', () => {
  it('serves the callers of its route, and nobody else', async () => {
    const { api, a1, b1 } = scene;
    const found: unknown[] = [];
    for (const operation of aliased()) {
      const foreign = await send(api, await createAliased(operation), { key: b1.workspaceKey });
      if (idIn(operation.route) !== undefined && foreign.status !== 404)
        found.push([operation.title, 'foreign', foreign.status]);
      const { status: unknown } = await send(api, await createAliased(operation), {});
      const expected = operation.route.access.schemes.length === 0 ? successOf(operation) : 401;
      if (unknown !== expected) found.push([operation.title, 'without a key', unknown]);
      const { status, text } = await send(api, await createAliased(operation), adminOf(operation, a1));
      if (status !== successOf(operation)) found.push([operation.title, status, text]);
    }
    expect(found).toEqual([]);
    expect(aliased().length).toBeGreaterThan(5);
  });

  it('is not in the document', async () => {
    const { body } = await scene.api.ask('GET', '/openapi.json');
    expect(Object.keys(body.paths).filter((path) => path.startsWith('/api-host'))).toEqual([]);
  });
});
