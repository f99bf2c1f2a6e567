// The stage `admin`: bytes at the admin port, and that nothing has changed by them but the records.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AdminStage, createAdminStage, violations } from './admin-driver.ts';
import { abuseAdminRows } from './rows-abuse.ts';
import { reachAdminRows } from './rows-reach.ts';
import { tokenAdminRows } from './rows-token.ts';

let stage: AdminStage;
beforeAll(async () => {
  stage = await createAdminStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

it.each([...reachAdminRows, ...tokenAdminRows, ...abuseAdminRows])(
  '$id',
  async ({ script, expect: expected }) => {
    expect(violations(expected, await stage.play(script, expected))).toEqual([]);
  },
);

it('leaves three sandboxes, with the one client that stays', async () => {
  const { body } = await stage.proxy.admin('GET', '/v1/sandboxes');
  expect(body['sandboxes']).toMatchObject([
    { id: 'default', connections: 1 },
    { id: 'tenant-a', connections: 0 },
    { id: 'tenant-b', connections: 0 },
  ]);
});
