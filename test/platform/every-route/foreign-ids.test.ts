// Foreign resources look like resources that do not exist: for every id in a path, a body or a query of the document, and
// for every list.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { namesIn, type Tenant } from './fixtures.ts';
import { guardedRoute, leakyRoutes, nestedRoute } from './leaky-routes.ts';
import { createExample, type EveryRoute, adminOf, openEveryRoute, send, successOf } from './scene.ts';
import { adminIn, findIdLeaks, findLeaks, idIn } from './foreign-callers.ts';
import { everyNth } from '../../support/run-size.ts';

let scene: EveryRoute;
beforeAll(async () => {
  scene = await openEveryRoute();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('an id in a path', () => {
  it('is accepted by every route from a caller of the own tenant', async () => {
    const { api, a1, operations } = scene;
    const found: unknown[] = [];
    for (const operation of operations.filter(({ route }) => route.access.to !== 'sandbox')) {
      const response = await send(api, await createExample(api, operation, a1), adminOf(operation, a1));
      if (response.status !== successOf(operation))
        found.push([operation.title, response.status, response.text]);
    }
    expect(found).toEqual([]);
    expect(operations.length).toBeGreaterThan(20);
  });

  it('of a foreign resource gets the response of an unknown id from every route, and nothing changes', async () => {
    const found: string[] = [];
    for (const operation of scene.operations) found.push(...(await findLeaks(scene, operation)));
    expect(found).toEqual([]);
  });

  it('that clients choose gives access to nothing in another workspace', async () => {
    const { api, a1, a2, operations, digest } = scene;
    const found: unknown[] = [];
    const free = operations.filter(
      (operation) => namesIn(operation.path).length > 0 && idIn(operation) === undefined,
    );
    for (const operation of free) {
      const example = await createExample(api, operation, a1);
      const isMade = await send(api, example, adminIn(a1));
      const before = await digest.take(a2.workspaceId);
      const response = await send(api, example, { key: a2.workspaceKey });
      if (response.status !== successOf(operation)) found.push([operation.title, response.status]);
      for (const id of idsWithin(isMade.body))
        if (response.text.includes(id)) found.push(`${operation.title} shows ${id}`);
      if (!alike(before, await digest.take(a2.workspaceId)))
        found.push(`${operation.title} changed another workspace`);
    }
    expect(found).toEqual([]);
    expect(free.length).toBeGreaterThan(0);
  });
});

describe('an id in a body or a query', () => {
  it('of another organization gets the response of an unknown id, and nothing changes', async () => {
    const found: unknown[] = [];
    let seen = 0;
    for (const operation of scene.operations.filter(({ route }) => route.access.to !== 'sandbox')) {
      const leaks = await findIdLeaks(scene, operation);
      found.push(...leaks.found);
      seen += leaks.seen;
    }
    expect(found).toEqual([]);
    expect(seen).toBeGreaterThan(1);
  });
});

describe('a response', () => {
  it('of every route without an id contains no id and no key of another organization or workspace', async () => {
    const { api, a1, a2, b1, operations } = scene;
    for (const operation of operations.filter(({ route }) => route.access.to !== 'sandbox'))
      for (const tenant of [a1, a2, b1])
        await send(api, await createExample(api, operation, tenant), adminOf(operation, tenant));
    const [ofA, ofA2, ofB] = [
      await idsOfOrganization(a1),
      await idsOfWorkspace(a2),
      await idsOfOrganization(b1),
    ];
    expect(Math.min(ofA.length, ofA2.length, ofB.length)).toBeGreaterThan(5);
    const found: unknown[] = [];
    for (const operation of operations.filter((one) => idIn(one) === undefined)) {
      const example = await createExample(api, operation, a1);
      const asks = [
        { as: adminOf(operation, a1), others: ofB },
        { as: { key: a1.organizationKey, tenant: a1.workspaceId }, others: ofB },
        { as: { key: a1.workspaceKey }, others: [...ofB, ...ofA2] },
      ];
      for (const { as, others } of asks) {
        const { text } = await send(api, example, as);
        for (const id of others) if (text.includes(id)) found.push(`${operation.title} shows ${id}`);
      }
    }
    expect(found).toEqual([]);
    // The check works: a response of the other organization contains its ids.
    const { text } = await api.ask('GET', '/api/v1/workspaces', { key: b1.admin.key });
    expect(ofB.some((id) => text.includes(id))).toBe(true);
  });
});

describe('the tests find a route with a leak', () => {
  everyNth(4, leakyRoutes, (some, options) =>
    it.each(some)('$summary', options, async (route) => {
      await using leaky = await openEveryRoute({ routes: [route] });
      const operation = leaky.operations.find((one) => one.route === route);
      expect(operation === undefined ? [] : await findLeaks(leaky, operation)).not.toEqual([]);
    }),
  );

  it(`${nestedRoute.summary}, and finds nothing where the listener is one of the workspace`, async () => {
    await using leaky = await openEveryRoute({ routes: [nestedRoute, guardedRoute] });
    const [served, guarded] = [nestedRoute, guardedRoute].map((route) =>
      leaky.operations.find((one) => one.route === route),
    );
    expect((await findIdLeaks(leaky, served!)).found).not.toEqual([]);
    expect(await findIdLeaks(leaky, guarded!)).toEqual({ found: [], seen: 1 });
  });
});

function alike(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

const UUID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g;

function idsWithin(value: unknown): readonly string[] {
  return [...(JSON.stringify(value) ?? '').matchAll(UUID)].map(([id]) => id);
}

async function idsOfOrganization({ organizationId }: Tenant): Promise<readonly string[]> {
  const { db } = scene.api.database.owner;
  const workspaces = await db
    .selectFrom('workspaces')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .execute();
  const rows: unknown[] = [organizationId, ...workspaces];
  for (const table of ['organization_members', 'workspace_members', 'api_keys'] as const)
    rows.push(
      ...(await db.selectFrom(table).selectAll().where('organization_id', '=', organizationId).execute()),
    );
  const ids = workspaces.map(({ id }) => id);
  for (const table of [
    'listeners',
    'sandbox_tokens',
    'proxy_profiles',
    'workspace_secrets',
    'boxes',
    'snapshots',
    'deployments',
    'revisions',
  ] as const)
    rows.push(...(await db.selectFrom(table).selectAll().where('workspace_id', 'in', ids).execute()));
  return [...new Set(idsWithin(rows))];
}

async function idsOfWorkspace({ workspaceId }: Tenant): Promise<readonly string[]> {
  const { db } = scene.api.database.owner;
  const found: string[] = [workspaceId];
  for (const table of [
    'listeners',
    'sandbox_tokens',
    'proxy_profiles',
    'workspace_secrets',
    'boxes',
    'snapshots',
    'deployments',
    'revisions',
    'api_keys',
    'workspace_members',
  ] as const) {
    const rows = await db.selectFrom(table).select('id').where('workspace_id', '=', workspaceId).execute();
    found.push(...rows.map(({ id }) => id));
  }
  return found;
}
