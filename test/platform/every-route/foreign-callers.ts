// Callers without access to A1, and what the responses reveal to them about its resources: nothing that they would not
// learn about a resource that does not exist.
import { randomUUID } from 'node:crypto';
import type { Ask, Asked } from '../../support/platform-api.ts';
import type { Operation } from './document.ts';
import { fixtureOf, namesIn, type Tenant } from './fixtures.ts';
import { idAt, idPlacesOf, withIdAt } from './id-places.ts';
import { createExample, type EveryRoute, type Example, adminOf, send, successOf } from './scene.ts';

export type ForeignCaller = { readonly who: string; readonly as: Ask; readonly statuses: readonly number[] };

export function foreignCallersTo(
  { path, route }: Operation,
  { a1, a2, b1 }: EveryRoute,
): readonly ForeignCaller[] {
  if (route.access.to === 'organization') {
    // A service key has no personal tokens, whatever the id.
    const isUsersOwn = path.startsWith('/api/v1/api-key/current');
    return [
      { who: 'a member of another organization', as: { key: b1.admin.key }, statuses: [404] },
      {
        who: 'a key of another organization',
        as: { key: b1.organizationKey },
        statuses: [isUsersOwn ? 403 : 404],
      },
      { who: 'a member of another workspace', as: { key: a2.memberKey }, statuses: [403, 404] },
      { who: 'a key of another workspace', as: { key: a2.workspaceKey }, statuses: [403, 404] },
      {
        who: 'a member of another organization with the X-Organization-Id of this one',
        as: { key: b1.admin.key, organization: a1.organizationId },
        statuses: [403],
      },
    ];
  }
  return [
    { who: 'a key of another workspace', as: { key: a2.workspaceKey }, statuses: [404] },
    { who: 'a member of another workspace', as: { key: a2.memberKey }, statuses: [404] },
    { who: 'an administrator, in another workspace', as: adminIn(a2), statuses: [404] },
    {
      who: 'a key of the organization, in another workspace',
      as: { key: a1.organizationKey, tenant: a2.workspaceId },
      statuses: [404],
    },
    { who: 'a key of a workspace of another organization', as: { key: b1.workspaceKey }, statuses: [404] },
    ...[a2.workspaceKey, a2.memberKey, b1.workspaceKey, b1.organizationKey, b1.admin.key].map((key) => ({
      who: 'a foreign key with the X-Tenant-Id of the workspace',
      as: { key, tenant: a1.workspaceId },
      statuses: [403],
    })),
    {
      who: 'a foreign key with the X-Organization-Id of the organization',
      as: { key: b1.organizationKey, organization: a1.organizationId },
      statuses: [403],
    },
  ];
}

export function adminIn(tenant: Tenant): Ask {
  return { key: tenant.admin.key, tenant: tenant.workspaceId };
}

/** The name of the id that an operation is about; undefined when there is none or clients choose it. */
export function idIn({ path, method }: Pick<Operation, 'path' | 'method'>): string | undefined {
  return namesIn(path).findLast((name) => fixtureOf({ path, method }, name).isFree !== true);
}

export function withId(example: Example, id: string, value: string): Example {
  return { ...example, values: { ...example.values, [id]: value } };
}

/** What a client can compare in responses: everything except the id that was sent and the request id, which some errors repeat. */
export function visible({ status, headers, text }: Asked, sent: string): { readonly status: number } {
  const fields = [...headers].filter(([name]) => name !== 'x-request-id');
  const compared = text.replaceAll(sent, 'ID').replaceAll(/"error_id":"[^"]*"/g, '');
  return { status, ...{ fields, text: compared } };
}

/** What foreign callers can learn about or change in a resource of A1; empty when the route is correct. */
export async function findLeaks(scene: EveryRoute, operation: Operation): Promise<readonly string[]> {
  const id = idIn(operation);
  if (id === undefined) return [];
  const { api, a1, digest } = scene;
  const found: string[] = [];
  const example = await createExample(api, operation, a1);
  const request = async (one: Example, as: Ask): Promise<{ readonly status: number }> =>
    visible(await send(api, one, as), one.values[id] ?? '');
  const before = JSON.stringify(await digest.take());
  for (const { who, as, statuses } of foreignCallersTo(operation, scene)) {
    const foreign = await request(example, as);
    const random = await request(withId(example, id, randomUUID()), as);
    const responses = JSON.stringify([foreign, random]);
    if (!statuses.includes(foreign.status))
      found.push(`${operation.title}: ${who} is not rejected: ${responses}`);
    if (JSON.stringify(foreign) !== JSON.stringify(random))
      found.push(`${operation.title}: ${who} can see that it exists: ${responses}`);
  }
  const after = JSON.stringify(await digest.take());
  if (before !== after) found.push(`${operation.title} changed something: ${before} ${after}`);
  // The resource exists: its own tenant has access.
  const own = await send(api, example, adminOf(operation, a1));
  if (own.status !== successOf(operation))
    found.push(`${operation.title} is rejected for its own tenant: ${own.status} ${own.text}`);
  return found;
}

/** What a caller can learn about or change by an id of another organization in a body or a query. */
export async function findIdLeaks(
  scene: EveryRoute,
  operation: Operation,
): Promise<{ readonly found: readonly unknown[]; readonly seen: number }> {
  const { api, a1, b1, digest } = scene;
  const found: unknown[] = [];
  const inQuery = operation.parameters.filter((one) => one.in === 'query');
  const places = [
    ...idPlacesOf(operation.body?.schema).map((place) => ({ part: 'body' as const, ...place })),
    ...inQuery.flatMap(({ name, schema }) =>
      idPlacesOf(schema, [name]).map((one) => ({ part: 'query' as const, ...one })),
    ),
  ];
  for (const { part, path, name } of places) {
    const example = await createExample(api, operation, a1);
    const theirs = await createExample(api, operation, b1);
    const before = JSON.stringify(await digest.take());
    const ask = async (id: string): Promise<{ readonly status: number }> => {
      const changed = { ...example, [part]: withIdAt(example[part], path, id) };
      return visible(await send(api, changed, adminOf(operation, a1)), id);
    };
    const foreign = await ask(idAt(theirs[part], path) ?? b1.workspaceId);
    const random = await ask(randomUUID());
    if (JSON.stringify(foreign) !== JSON.stringify(random))
      found.push({ route: operation.title, name, foreign, random });
    if (part === 'body' && foreign.status !== 404) found.push({ route: operation.title, name, foreign });
    if (before !== JSON.stringify(await digest.take())) found.push(`${operation.title} changed something`);
  }
  return { found, seen: places.length };
}
