// `/api/v1/orgs/current` and `/api/v1/workspaces`.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';
import { deleteWorkspace } from '../../../src/platform/management/workspaces.ts';
import { organizationRoleIds, workspaceRoleIds } from '../../../src/platform/identity/permission.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { operationsOf } from './operations-of.ts';

let api: PlatformApi;
let organization: string;
let admin: string;

beforeAll(async () => {
  api = await createPlatformApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  organization = await api.addOrganization();
  admin = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
});

const path = '/api/v1/workspaces';

/** Whether a statement in this database waits for a row lock. */
async function isWaitingForLock({ database }: PlatformApi): Promise<boolean> {
  const waiting = sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  return (await waiting.execute(database.owner.db)).rows.length > 0;
}
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);

describe('the organization', () => {
  it('is readable with every role in it, and renamed with the roles that manage it', async () => {
    const key = await api.addMemberKey(organization, 'ORGANIZATION_VIEWER');
    const read = await api.ask('GET', '/api/v1/orgs/current', { key });
    expect([read.status, read.body]).toEqual([
      200,
      {
        id: organization,
        display_name: expect.any(String),
        is_personal: false,
        plan: 'enterprise',
        tier: 'enterprise',
        config: { can_use_audit_logs: true },
        permissions: ['organization:read'],
        reached_max_workspaces: false,
        connected_to_stripe: false,
        connected_to_metronome: false,
        has_cancelled: false,
        created_at: time,
        updated_at: time,
      },
    ]);
    const info = await api.ask('GET', '/api/v1/orgs/current/info', { key });
    expect(read.body).toMatchObject(info.body);
    const body = { display_name: '  Acme & Søns  ' };
    expect((await api.ask('PATCH', '/api/v1/orgs/current/info', { key, body })).status).toBe(403);
    const renamed = await api.ask('PATCH', '/api/v1/orgs/current/info', { key: admin, body });
    expect([renamed.status, renamed.body.display_name]).toEqual([200, 'Acme & Søns']);
    expect(await operationsOf(api, organization)).toEqual([
      ['update_organization_info', false, []],
      ['update_organization_info', true, [organization]],
    ]);
  });

  it.each([
    ['empty', ''],
    ['blank', ' \u2003 '],
    ['too long', 'x'.repeat(129)],
    ['on two lines', 'a\nb'],
    ['with a NUL', 'a\u0000b'],
    ['with an escape sequence', 'a\u001b[31mb'],
    ['with a bidirectional mark', 'a\u202eb'],
    ['a number', 7],
    ['null', null],
  ])('rejects a name that is %s', async (_, display_name) => {
    const refused = await api.ask('PATCH', '/api/v1/orgs/current/info', {
      key: admin,
      body: { display_name },
    });
    expect(refused.status).toBe(422);
    expect(refused.body.detail[0].loc).toEqual(['body', 'display_name']);
  });

  it('checks the length of a name before its pattern, which would take long on a megabyte', async () => {
    const display_name = 'a.'.repeat(250_000);
    const refused = await api.ask('PATCH', '/api/v1/orgs/current/info', {
      key: admin,
      body: { display_name },
    });
    expect(refused.body.detail).toEqual([
      {
        loc: ['body', 'display_name'],
        msg: 'Input must have at most 128 characters',
        type: 'string_too_long',
      },
    ]);
  });

  it('ignores fields that it does not know', async () => {
    const body = { display_name: 'Acme', plan: 'free', is_personal: true };
    const renamed = await api.ask('PATCH', '/api/v1/orgs/current/info', { key: admin, body });
    expect(renamed.body).toMatchObject({ display_name: 'Acme', plan: 'enterprise', is_personal: false });
  });

  it('has the same roles as every other, by ids that do not change', async () => {
    const { body } = await api.ask('GET', '/api/v1/orgs/current/roles', { key: admin });
    const ids = { ...organizationRoleIds, ...workspaceRoleIds };
    expect(Object.fromEntries(body.map(({ name, id }: { name: string; id: string }) => [name, id]))).toEqual(
      ids,
    );
  });
});

describe('a workspace', () => {
  it('is created, listed, renamed and deleted, and each change leaves one event', async () => {
    await api.addWorkspace(organization);
    const made = await api.ask('POST', path, { key: admin, body: { display_name: 'Research' } });
    expect(made.status).toBe(200);
    const { id } = made.body;
    expect(made.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      organization_id: organization,
      display_name: 'Research',
      tenant_handle: null,
      is_personal: false,
      is_deleted: false,
      data_plane_url: null,
      created_at: time,
      updated_at: made.body.created_at,
    });
    const listed = await api.ask('GET', path, { key: admin });
    expect([listed.body.length, listed.body[1]]).toMatchObject([2, made.body]);
    const renamed = await api.ask('PATCH', `${path}/${id}`, { key: admin, body: { display_name: 'R&D' } });
    expect([renamed.status, renamed.body.display_name]).toEqual([200, 'R&D']);
    const gone = await api.ask('DELETE', `${path}/${id}`, { key: admin });
    expect([gone.status, gone.body]).toEqual([200, {}]);
    expect((await api.ask('DELETE', `${path}/${id}`, { key: admin })).status).toBe(404);
    expect(await operationsOf(api, organization)).toEqual([
      ['create_workspace', true, [id]],
      ['update_workspace', true, [id]],
      ['delete_workspace', true, [id]],
      ['delete_workspace', false, [id]],
    ]);
  });

  it('has a unique name in its organization', async () => {
    const body = { display_name: 'Research' };
    expect((await api.ask('POST', path, { key: admin, body })).status).toBe(200);
    const again = await api.ask('POST', path, { key: admin, body });
    expect([again.status, again.body.detail]).toEqual([409, 'A workspace with this name already exists']);
    const other = await api.addWorkspace(organization);
    expect((await api.ask('PATCH', `${path}/${other}`, { key: admin, body })).status).toBe(409);
    const foreign = await api.addServiceKey(await api.addOrganization(), 'ORGANIZATION_ADMIN');
    expect((await api.ask('POST', path, { key: foreign, body })).status).toBe(200);
  });

  it('of another organization is not found', async () => {
    const foreign = await api.addWorkspace(await api.addOrganization());
    const body = { display_name: 'Mine' };
    for (const id of [foreign, randomUUID()]) {
      const changed = await api.ask('PATCH', `${path}/${id}`, { key: admin, body });
      expect([changed.status, changed.text]).toEqual([
        404,
        '{"detail":"Workspace not found","code":"not_found"}\n',
      ]);
      const gone = await api.ask('DELETE', `${path}/${id}`, { key: admin });
      expect([gone.status, gone.text]).toEqual([
        404,
        '{"detail":"Workspace not found","code":"not_found"}\n',
      ]);
    }
  });

  it('is visible to its members only, and renamed by its administrators', async () => {
    const [own, other] = [await api.addWorkspace(organization), await api.addWorkspace(organization)];
    const member = async (role: 'WORKSPACE_ADMIN' | 'WORKSPACE_USER'): Promise<string> =>
      api.addMemberKey(organization, 'ORGANIZATION_USER', { id: own, role });
    const keys = [await member('WORKSPACE_ADMIN'), await member('WORKSPACE_USER')];
    const rename = async (key: string | undefined, id: string): Promise<number> => {
      const body = { display_name: randomUUID() };
      return (await api.ask('PATCH', `${path}/${id}`, { key: key ?? '', body })).status;
    };
    for (const key of keys) {
      const listed = await api.ask('GET', path, { key });
      expect(listed.body.map(({ id }: { id: string }) => id)).toEqual([own]);
      expect(await rename(key, other)).toBe(404);
    }
    expect([await rename(keys[0], own), await rename(keys[1], own)]).toEqual([200, 403]);
    const service = await api.addServiceKey(organization, 'ORGANIZATION_USER');
    expect((await api.ask('GET', path, { key: service })).body).toEqual([]);
  });

  it('that is the last one cannot be deleted', async () => {
    const id = await api.addWorkspace(organization);
    const refused = await api.ask('DELETE', `${path}/${id}`, { key: admin });
    expect([refused.status, refused.body.detail]).toEqual([
      409,
      'The last workspace of an organization cannot be deleted: create another one first',
    ]);
    expect((await api.ask('GET', path, { key: admin })).body).toHaveLength(1);
    expect(await operationsOf(api, organization)).toEqual([['delete_workspace', false, [id]]]);
  });

  it('cannot be deleted when the only other one is being deleted', async () => {
    const { store } = api.database;
    const ids = [await api.addWorkspace(organization), await api.addWorkspace(organization)];
    const [first = '', second = ''] = ids;
    let later: Promise<string> = Promise.resolve('not begun');
    await store.write(async (trx) => {
      await deleteWorkspace(trx, organization, first);
      later = store
        .write((other) => deleteWorkspace(other, organization, second))
        .then(() => 'deleted')
        .catch((error: { kind: string }) => error.kind);
      // Until it waits for the lock of this transaction, or has ended without waiting.
      const deletion = { hasEnded: false };
      void later.then(() => (deletion.hasEnded = true));
      while (!deletion.hasEnded && !(await isWaitingForLock(api))) continue;
    });
    expect(await later).toBe('conflict');
    expect((await api.ask('GET', path, { key: admin })).body).toHaveLength(1);
  });

  it('is deleted with its keys', async () => {
    const [id] = [await api.addWorkspace(organization), await api.addWorkspace(organization)];
    const key = await api.addServiceKey(organization, 'WORKSPACE_ADMIN', id);
    expect((await api.ask('GET', '/api/v1/api-key', { key })).status).toBe(200);
    await api.ask('DELETE', `${path}/${id}`, { key: admin });
    expect((await api.ask('GET', '/api/v1/api-key', { key })).status).toBe(401);
  });

  it('is listed page by page', async () => {
    for (let at = 0; at < 5; at += 1) await api.addWorkspace(organization);
    const ids = async (query: string): Promise<readonly string[]> => {
      const listed = await api.ask('GET', `${path}?${query}`, { key: admin });
      return listed.body.map(({ id }: { id: string }) => id);
    };
    const all = await ids('');
    expect(all).toHaveLength(5);
    expect([...(await ids('limit=3')), ...(await ids('limit=3&offset=3'))]).toEqual(all);
    expect((await api.ask('GET', `${path}?limit=0`, { key: admin })).status).toBe(422);
    expect((await api.ask('GET', `${path}?limit=101`, { key: admin })).status).toBe(422);
  });
});
