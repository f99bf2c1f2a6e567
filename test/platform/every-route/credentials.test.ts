// Every route with wrong credentials: no key, a key that is wrong in any way, a key of the other kind; and with headers
// that name a foreign or an unknown workspace or organization.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import type { Ask, Asked } from '../../support/platform-api.ts';
import type { Operation } from './document.ts';
import { createExample, type EveryRoute, adminOf, openEveryRoute, send, successOf } from './scene.ts';
import { sample } from '../../support/run-size.ts';

let scene: EveryRoute;
let sandboxToken: string;
beforeAll(async () => {
  scene = await openEveryRoute({ now });
  const { api, a1 } = scene;
  const made = await api.ask('POST', '/v1/sandboxes/here/tokens', { key: a1.workspaceKey, body: {} });
  sandboxToken = made.body.token;
});
afterAll(() => scene[Symbol.asyncDispose]());

const requiresKey = ({ route }: Operation): boolean => route.access.to !== 'anyone';

/** Of those that require a key. Each of them asks dozens of times. */
const some = (operations: readonly Operation[]): readonly Operation[] =>
  sample(3, operations.filter(requiresKey));

/** Failed attempts are limited, for each address and in a minute for all of them, which is not what is tested here. */
let peers = 0;
const now = (): number => Date.now() + Math.floor(peers / 2_000) * 61_000;
function fromNewAddress(): { readonly peer: string } {
  peers += 1;
  return { peer: `10.${(peers >> 16) % 256}.${(peers >> 8) % 256}.${peers % 256}` };
}

async function expired(kind: 'service' | 'personal'): Promise<string> {
  const { text, hash, shortKey } = mintKey(kind);
  const { organizationId, admin } = scene.a1;
  const of =
    kind === 'service'
      ? { user_id: null, role: 'ORGANIZATION_ADMIN' }
      : { user_id: admin.userId, role: null };
  const row = { workspace_id: null, last_used_at: null, short_key: shortKey, description: 'expired', ...of };
  await scene.api.database.owner.db
    .insertInto('api_keys')
    .values({ kind, hash, organization_id: organizationId, expires_at: new Date(Date.now() - 1), ...row })
    .execute();
  return text;
}

async function expiredSandboxToken(): Promise<string> {
  const { text, hash, shortKey } = mintKey('sandbox');
  const row = { sandbox: 'here', short_token: shortKey, hash, expires_at: new Date(Date.now() - 1) };
  await scene.api.database.owner.db
    .insertInto('sandbox_tokens')
    .values({ workspace_id: scene.a1.workspaceId, ...row })
    .execute();
  return text;
}

/** Credentials that the route must reject; which key is valid depends on the route. */
async function wrongKeys({ route }: Operation): Promise<readonly Ask[]> {
  const { a1, b1 } = scene;
  const right = route.access.to === 'sandbox' ? sandboxToken : a1.admin.key;
  const others =
    route.access.to === 'sandbox' ? [a1.admin.key, a1.organizationKey, a1.workspaceKey] : [sandboxToken];
  const keys = [
    ...[mintKey('service').text, mintKey('personal').text, mintKey('sandbox').text],
    ...[await expired('service'), await expired('personal'), await expiredSandboxToken()],
    ...['x', 'sp_sk_', `${right}x`, right.slice(0, -1), right.toUpperCase(), `${right}, ${right}`, 'ä'],
    ...others,
  ];
  return [
    ...keys.flatMap((key) => [{ key }, ...(/^[\w.-]+$/.test(key) ? [{ bearer: key }] : [])]),
    { key: right, bearer: mintKey('service').text },
    { key: mintKey('service').text, bearer: right },
    { key: right, bearer: route.access.to === 'sandbox' ? mintKey('sandbox').text : b1.admin.key },
  ];
}

function visibleIn({ status, headers, text }: Asked): string {
  const fields = [...headers].filter(([name]) => name !== 'x-request-id');
  // Some errors repeat the id of the request.
  return JSON.stringify({ status, fields, text: text.replaceAll(/"error_id":"[^"]*"/g, '') });
}

describe('every route', () => {
  it('rejects a request without a key, and changes nothing', async () => {
    const { api, a1, digest } = scene;
    const found: unknown[] = [];
    for (const operation of scene.operations.filter(requiresKey)) {
      const example = await createExample(api, operation, a1);
      const before = [await digest.take(), await countEvents()];
      for (const as of [{}, { tenant: a1.workspaceId }, { organization: a1.organizationId }]) {
        const response = await send(api, example, as);
        if (response.status !== 401 || response.headers.get('www-authenticate') !== 'Bearer')
          found.push([operation.title, response.status, response.text]);
      }
      expect([await digest.take(), await countEvents()]).toEqual(before);
    }
    expect(found).toEqual([]);
  });

  it('rejects every wrong key with the same message, and changes nothing', async () => {
    const { api, a1, digest } = scene;
    const found: unknown[] = [];
    for (const operation of some(scene.operations)) {
      const example = await createExample(api, operation, a1);
      const asks = await wrongKeys(operation);
      const before = [await digest.take(), await countEvents()];
      const responses = new Map<string, Ask>();
      for (const as of asks)
        responses.set(visibleIn(await send(api, example, { ...as, ...fromNewAddress() })), as);
      if (responses.size !== 1 || !/"status":401/.test([...responses.keys()].join()))
        found.push([operation.title, ...responses]);
      expect([await digest.take(), await countEvents()]).toEqual(before);
    }
    expect(found).toEqual([]);
  });

  it('rejects malformed bearer credentials', async () => {
    const { api, a1 } = scene;
    const found: unknown[] = [];
    for (const operation of some(scene.operations)) {
      const example = await createExample(api, operation, a1);
      for (const authorization of [
        'Basic YTpi',
        'Bearer',
        'Bearer a b',
        a1.admin.key,
        `Bearer ${a1.admin.key},`,
      ]) {
        const response = await send(api, example, { headers: { authorization }, ...fromNewAddress() });
        if (response.status !== 401) found.push([operation.title, authorization, response.status]);
      }
    }
    expect(found).toEqual([]);
  });
});

describe('a header that names a workspace', () => {
  const inWorkspaces = (): readonly Operation[] =>
    scene.operations.filter(({ route }) => route.access.to === 'workspace');

  it('of another organization, or an unknown one, is rejected with the same message', async () => {
    const { api, a1, a2, b1 } = scene;
    const found: unknown[] = [];
    for (const operation of inWorkspaces()) {
      const example = await createExample(api, operation, a1);
      for (const key of [a1.admin.key, a1.organizationKey, a1.workspaceKey, a1.memberKey]) {
        const foreign = key === a1.workspaceKey || key === a1.memberKey ? [a2, b1] : [b1];
        const responses = await Promise.all(
          [...foreign.map(({ workspaceId }) => workspaceId), b1.organizationId, randomUUID()].map(
            async (tenant) => visibleIn(await send(api, example, { key, tenant })),
          ),
        );
        if (new Set(responses).size !== 1 || !responses[0]?.includes('"status":403'))
          found.push([operation.title, responses]);
      }
    }
    expect(found).toEqual([]);
  });

  it('with a malformed id, or twice, is reported as an issue of that header', async () => {
    const { api, a1 } = scene;
    const found: unknown[] = [];
    const twice = `${a1.workspaceId}, ${a1.workspaceId}`;
    for (const operation of sample(3, inWorkspaces(), 1)) {
      const example = await createExample(api, operation, a1);
      for (const tenant of [
        'x',
        '',
        twice,
        `{${a1.workspaceId}}`,
        `${a1.workspaceId}0`,
        "' or 1=1 --",
        '*',
      ]) {
        const { status, body, text } = await send(api, example, { key: a1.admin.key, tenant });
        const places =
          body === undefined
            ? [...text.matchAll(/<p>([\w.-]+): /g)].map(([, place]) => place)
            : body.detail?.map?.(({ loc }: { readonly loc: readonly string[] }) => loc.join('.'));
        if (status !== 422 || String(places) !== 'header.X-Tenant-Id')
          found.push([operation.title, tenant, status, text]);
      }
    }
    expect(found).toEqual([]);
  });

  it('is accepted in upper case', async () => {
    const { api, a1 } = scene;
    const found: unknown[] = [];
    for (const operation of sample(3, inWorkspaces(), 2)) {
      const tenant = a1.workspaceId.toUpperCase();
      const { status } = await send(api, await createExample(api, operation, a1), {
        key: a1.admin.key,
        tenant,
      });
      if (status !== successOf(operation)) found.push([operation.title, status]);
    }
    expect(found).toEqual([]);
  });

  it('is required of a key without a home workspace', async () => {
    const { api, a1 } = scene;
    const found: unknown[] = [];
    for (const operation of inWorkspaces())
      for (const key of [a1.admin.key, a1.organizationKey]) {
        const { status, text } = await send(api, await createExample(api, operation, a1), { key });
        const isNamed = status === 403 && text.includes('requires workspace specification');
        if (!isNamed) found.push([operation.title, status, text]);
      }
    expect(found).toEqual([]);
  });
});

describe('a header that names an organization', () => {
  it('other than that of the key is rejected with the same message, whatever it names', async () => {
    const { api, a1, b1 } = scene;
    const found: unknown[] = [];
    const own = a1.organizationId;
    const inKeys = scene.operations.filter(({ route }) =>
      ['workspace', 'organization'].includes(route.access.to),
    );
    for (const operation of sample(2, inKeys)) {
      const example = await createExample(api, operation, a1);
      const responses: string[] = [];
      for (const organization of [b1.organizationId, randomUUID(), 'x', '', `${own}, ${own}`, a1.workspaceId])
        responses.push(visibleIn(await send(api, example, { ...adminOf(operation, a1), organization })));
      if (new Set(responses).size !== 1 || !responses[0]?.includes('"status":403'))
        found.push([operation.title, responses]);
      const right = await send(api, example, {
        ...adminOf(operation, a1),
        organization: own.toUpperCase(),
      });
      if (right.status !== successOf(operation)) found.push([operation.title, right.status]);
    }
    expect(found).toEqual([]);
  });
});

async function countEvents(): Promise<unknown> {
  const { fn } = scene.api.database.owner.db;
  return scene.api.database.owner.db.selectFrom('audit_events').select(fn.countAll().as('n')).execute();
}
