// Those who ask for things of A1 and have no part in it, and what they are told of them: nothing that they would not be
// told of a thing that does not exist.
import { randomUUID } from 'node:crypto';
import type { Ask, Asked } from '../../support/platform-api.ts';
import type { Operation } from './document.ts';
import { fixtureOf, namesIn } from './fixtures.ts';
import { createExample, type EveryRoute, type Example, mightiest, send } from './scene.ts';
import type { Place } from './tenants.ts';

export type Asker = { readonly who: string; readonly as: Ask; readonly statuses: readonly number[] };

export function outsidersTo({ path, route }: Operation, { a1, a2, b1 }: EveryRoute): readonly Asker[] {
  if (route.access.to === 'organization') {
    // A service key has no tokens of its own, whatever their ids.
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
        who: 'a member of another organization who names this one as his',
        as: { key: b1.admin.key, organization: a1.organizationId },
        statuses: [403],
      },
    ];
  }
  return [
    { who: 'a key of another workspace', as: { key: a2.workspaceKey }, statuses: [404] },
    { who: 'a member of another workspace', as: { key: a2.memberKey }, statuses: [404] },
    { who: 'an administrator, in another workspace', as: mightiestIn(a2), statuses: [404] },
    {
      who: 'a key of the organization, in another workspace',
      as: { key: a1.organizationKey, tenant: a2.workspaceId },
      statuses: [404],
    },
    { who: 'a key of a workspace of another organization', as: { key: b1.workspaceKey }, statuses: [404] },
    ...[a2.workspaceKey, a2.memberKey, b1.workspaceKey, b1.organizationKey, b1.admin.key].map((key) => ({
      who: 'one from elsewhere who names the workspace',
      as: { key, tenant: a1.workspaceId },
      statuses: [403],
    })),
    {
      who: 'one from elsewhere who names the organization as his',
      as: { key: b1.organizationKey, organization: a1.organizationId },
      statuses: [403],
    },
  ];
}

export function mightiestIn(place: Place): Ask {
  return { key: place.admin.key, tenant: place.workspaceId };
}

/** The name of the id that an operation is about; undefined where there is none, or one that its sender makes up. */
export function idIn({ path }: Pick<Operation, 'path'>): string | undefined {
  return namesIn(path).findLast((name) => fixtureOf(path, name).isFree !== true);
}

export function withId(example: Example, id: string, value: string): Example {
  return { ...example, values: { ...example.values, [id]: value } };
}

/** What a client can tell of an answer: all but the id that he has sent himself, and the number of the answer. */
export function visible({ status, headers, text }: Asked, sent: string): { readonly status: number } {
  const fields = [...headers].filter(([name]) => name !== 'x-request-id');
  return { status, ...{ fields, text: text.replaceAll(sent, 'ID') } };
}

/** What strangers are told of a thing of A1, and what becomes of it; nothing is as it should be. */
export async function findReported(scene: EveryRoute, operation: Operation): Promise<readonly string[]> {
  const id = idIn(operation);
  if (id === undefined) return [];
  const { api, a1, digest } = scene;
  const found: string[] = [];
  const example = await createExample(api, operation, a1);
  const report = async (one: Example, as: Ask): Promise<{ readonly status: number }> =>
    visible(await send(api, one, as), one.values[id] ?? '');
  const before = JSON.stringify(await digest.take());
  for (const { who, as, statuses } of outsidersTo(operation, scene)) {
    const foreign = await report(example, as);
    const random = await report(withId(example, id, randomUUID()), as);
    const reported = JSON.stringify([foreign, random]);
    if (!statuses.includes(foreign.status))
      found.push(`${operation.title}: ${who} is not refused: ${reported}`);
    if (JSON.stringify(foreign) !== JSON.stringify(random))
      found.push(`${operation.title}: ${who} can tell that it is there: ${reported}`);
  }
  const after = JSON.stringify(await digest.take());
  if (before !== after) found.push(`${operation.title} changed something: ${before} ${after}`);
  // Whether it is there at all.
  const own = await send(api, example, mightiest(operation, a1));
  if (own.status !== operation.route.success.status)
    found.push(`${operation.title} is refused to whom it belongs: ${own.status} ${own.text}`);
  return found;
}
