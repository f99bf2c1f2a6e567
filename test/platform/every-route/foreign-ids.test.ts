// What is another's is as if it were not there: for every id in a path, a body or a query of the document, whoever it is
// of, and for everything that is listed.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { idsOf, namesIn } from './fixtures.ts';
import { leakyRoutes } from './leaky-routes.ts';
import { createExample, type EveryRoute, mightiest, openEveryRoute, send } from './scene.ts';
import { findReported, idIn, mightiestIn, visible } from './strangers.ts';
import type { Place } from './tenants.ts';

let scene: EveryRoute;
beforeAll(async () => {
  scene = await openEveryRoute();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('an id in a path', () => {
  it('is served to whom it belongs, by every route', async () => {
    const { api, a1, operations } = scene;
    const found: unknown[] = [];
    for (const operation of operations.filter(({ route }) => route.access.to !== 'sandbox')) {
      const response = await send(api, await createExample(api, operation, a1), mightiest(operation, a1));
      if (response.status !== operation.route.success.status)
        found.push([operation.title, response.status, response.text]);
    }
    expect(found).toEqual([]);
    expect(operations.length).toBeGreaterThan(20);
  });

  it('of another is answered as one that does not exist, by every route, and nothing changes', async () => {
    const found: string[] = [];
    for (const operation of scene.operations) found.push(...(await findReported(scene, operation)));
    expect(found).toEqual([]);
  });

  it('that its sender makes up reaches nothing of another workspace', async () => {
    const { api, a1, a2, operations, digest } = scene;
    const found: unknown[] = [];
    const free = operations.filter(
      (operation) => namesIn(operation.path).length > 0 && idIn(operation) === undefined,
    );
    for (const operation of free) {
      const example = await createExample(api, operation, a1);
      const isMade = await send(api, example, mightiestIn(a1));
      const before = await digest.take(a2.workspaceId);
      const response = await send(api, example, { key: a2.workspaceKey });
      if (response.status !== operation.route.success.status) found.push([operation.title, response.status]);
      for (const id of idsWithin(isMade.body))
        if (response.text.includes(id)) found.push(`${operation.title} shows ${id}`);
      if (!alike(before, await digest.take(a2.workspaceId)))
        found.push(`${operation.title} changed another's`);
    }
    expect(found).toEqual([]);
    expect(free.length).toBeGreaterThan(0);
  });
});

describe('an id in a body or a query', () => {
  it('of another organization is answered as one that does not exist, and nothing changes', async () => {
    const { api, a1, b1, operations, digest } = scene;
    const found: unknown[] = [];
    let seen = 0;
    for (const operation of operations.filter(({ route }) => route.access.to !== 'sandbox')) {
      const example = await createExample(api, operation, a1);
      const queryIds = operation.parameters.filter(
        (one) => one.in === 'query' && one.schema.format === 'uuid',
      );
      const places = [
        ...idsOf(operation.body?.schema).map((name) => ({ part: 'body' as const, name })),
        ...queryIds.map(({ name }) => ({ part: 'query' as const, name })),
      ];
      for (const { part, name } of places) {
        seen += 1;
        const theirs = (await createExample(api, operation, b1)).body as Record<string, string> | undefined;
        const foreignId = theirs?.[name] ?? b1.workspaceId;
        const before = await digest.take();
        const ask = async (id: string): Promise<{ readonly status: number }> => {
          const changed = { ...example, [part]: { ...(example[part] as object), [name]: id } };
          return visible(await send(api, changed, mightiest(operation, a1)), id);
        };
        const [foreign, random] = [await ask(foreignId), await ask(randomUUID())];
        if (JSON.stringify(foreign) !== JSON.stringify(random))
          found.push({ route: operation.title, name, foreign, random });
        if (part === 'body' && foreign.status !== 404) found.push({ route: operation.title, name, foreign });
        if (!alike(before, await digest.take())) found.push(`${operation.title} changed something`);
      }
    }
    expect(found).toEqual([]);
    expect(seen).toBeGreaterThan(1);
  });
});

describe('an answer', () => {
  it('holds no id and no key of another organization or workspace, by every route without an id', async () => {
    const { api, a1, a2, b1, operations } = scene;
    for (const operation of operations.filter(({ route }) => route.access.to !== 'sandbox'))
      for (const place of [a1, a2, b1])
        await send(api, await createExample(api, operation, place), mightiest(operation, place));
    const [ofA, ofA2, ofB] = [
      await idsOfOrganization(a1),
      await idsOfWorkspace(a2),
      await idsOfOrganization(b1),
    ];
    expect(Math.min(ofA.length, ofA2.length, ofB.length)).toBeGreaterThan(5);
    const found: unknown[] = [];
    for (const operation of operations.filter(({ path }) => idIn({ path }) === undefined)) {
      const example = await createExample(api, operation, a1);
      const asks = [
        { as: mightiest(operation, a1), others: ofB },
        { as: { key: a1.organizationKey, tenant: a1.workspaceId }, others: ofB },
        { as: { key: a1.workspaceKey }, others: [...ofB, ...ofA2] },
      ];
      for (const { as, others } of asks) {
        const { text } = await send(api, example, as);
        for (const id of others) if (text.includes(id)) found.push(`${operation.title} shows ${id}`);
      }
    }
    expect(found).toEqual([]);
    // The same question, with another answer.
    const { text } = await api.ask('GET', '/api/v1/workspaces', { key: b1.admin.key });
    expect(ofB.some((id) => text.includes(id))).toBe(true);
  });
});

describe("a route that tells of what is another's is seen", () => {
  it.each(leakyRoutes)('$summary', async (route) => {
    await using leaky = await openEveryRoute({ routes: [route] });
    const operation = leaky.operations.find((one) => one.route === route);
    expect(operation === undefined ? [] : await findReported(leaky, operation)).not.toEqual([]);
  });
});

function alike(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

const UUID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g;

function idsWithin(value: unknown): readonly string[] {
  return [...(JSON.stringify(value) ?? '').matchAll(UUID)].map(([id]) => id);
}

async function idsOfOrganization({ organizationId }: Place): Promise<readonly string[]> {
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
  for (const table of ['listeners', 'sandbox_tokens'] as const)
    rows.push(...(await db.selectFrom(table).selectAll().where('workspace_id', 'in', ids).execute()));
  return [...new Set(idsWithin(rows))];
}

async function idsOfWorkspace({ workspaceId }: Place): Promise<readonly string[]> {
  const { db } = scene.api.database.owner;
  const found: string[] = [workspaceId];
  for (const table of ['listeners', 'sandbox_tokens', 'api_keys', 'workspace_members'] as const) {
    const rows = await db.selectFrom(table).select('id').where('workspace_id', '=', workspaceId).execute();
    found.push(...rows.map(({ id }) => id));
  }
  return found;
}
