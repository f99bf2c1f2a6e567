// A module with callers of its own brings its own access: what it grants is what a route gets, and it is asked again in the
// transaction of a write.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import { z } from '../../../src/base/schema.ts';
import type { Access } from '../../../src/platform/api/access.ts';
import { defineRoute, type Route } from '../../../src/platform/api/route.ts';
import { createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

type EndUserGrant = { readonly organizationId: string; readonly endUser: { readonly name: string } };

let organizationId: string;
let isKnown: boolean;
let confirmed: number;

const asEndUser: Access<EndUserGrant> = {
  to: 'end_user',
  schemes: ['Bearer'],
  parameters: [],
  async enter({ head }) {
    const name = head.field('x-end-user');
    if (name === undefined) throw new DomainError('unauthenticated', 'Send X-End-User');
    return { organizationId, endUser: { name } };
  },
  async confirm(_, granted) {
    confirmed += 1;
    if (!isKnown) throw new DomainError('unauthenticated', 'No longer known');
    return granted;
  },
  callerOf: ({ endUser }) => endUser.name,
};

const shared = {
  tag: 'Test',
  access: asEndUser,
  responses: { 200: z.strictObject({ name: z.string() }) },
} as const;
const routes: readonly Route[] = [
  defineRoute({
    ...shared,
    method: 'GET',
    path: '/end-user',
    summary: 'a read of an end user',
    tracking: { untracked: 'a test' },
    handle: async ({ endUser }) => ({ body: { name: endUser.name } }),
  }),
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/end-user',
    summary: 'a write of an end user',
    tracking: { operation: 'create_listener' },
    handle: async ({ endUser }) => ({ body: { name: endUser.name } }),
  }),
];

let api: PlatformApi;
beforeEach(async () => {
  api = await createPlatformApi({ routes });
  organizationId = await api.addOrganization();
  isKnown = true;
  confirmed = 0;
});
afterEach(() => api[Symbol.asyncDispose]());

const ask = (method: string): ReturnType<PlatformApi['ask']> =>
  api.ask(method, '/end-user', { headers: { 'x-end-user': 'ada' } });

async function events(): Promise<readonly string[]> {
  const rows = await api.database.owner.db.selectFrom('audit_events').select('organization_id').execute();
  return rows.map(({ organization_id }) => organization_id);
}

describe('an access of a module', () => {
  it('gives a route the callers that it knows, and asks again before a write', async () => {
    expect([(await ask('GET')).body, confirmed]).toEqual([{ name: 'ada' }, 0]);
    expect([(await ask('POST')).body, confirmed]).toEqual([{ name: 'ada' }, 1]);
    expect(await events()).toEqual([organizationId]);
  });

  it('rejects the others, also between a request and its transaction', async () => {
    expect((await api.ask('POST', '/end-user')).status).toBe(401);
    isKnown = false;
    expect((await ask('POST')).status).toBe(401);
  });

  it('is described with its schemes', async () => {
    const { body } = await api.ask('GET', '/openapi.json');
    expect(body.paths['/end-user'].get).toMatchObject({ 'x-access': 'end_user', security: [{ Bearer: [] }] });
    expect((await api.ask('GET', '/docs')).text).toContain('Needs access to: end_user.');
  });
});
