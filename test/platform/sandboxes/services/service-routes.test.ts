// Service URLs by the API: what they are for, how long they are valid, and that nothing of them can be read again.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashKey, mintKey } from '../../../../src/platform/identity/api-key.ts';
import { createBoxExpiry } from '../../../../src/platform/sandboxes/reconciliation/box-expiry.ts';
import { confirmToken } from '../../../../src/platform/sandboxes/services/service-tokens.ts';
import { BOXES, createBoxScene } from '../box-scene.ts';
import { untilSomebodyWaits } from '../gateway/waiting-locks.ts';
import { createServiceScene, DOMAIN, type ServiceScene } from './service-scene.ts';

let scene: ServiceScene;
let box: { readonly id: string; readonly name: string };
beforeAll(async () => {
  scene = await createServiceScene();
  box = await scene.create({ name: 'service' });
});
afterAll(() => scene[Symbol.asyncDispose]());

const ask = (body: unknown, name = box.name, more = {}) =>
  scene.ask('POST', `${BOXES}/${name}/service-url`, body, more);

function rows() {
  return scene.api.database.owner.db.selectFrom('box_service_tokens').selectAll().execute();
}

describe('the deletion of a service URL', () => {
  it('does not lock the box before the token, which a request that starts the box locks first', async () => {
    await ask({ port: 8000 });
    const { body } = await scene.ask('GET', `${BOXES}/${box.name}/service-urls`);
    const [{ id }] = body.service_urls;
    const { store, owner } = scene.api.database;
    const { deleted } = await store.write(async (trx) => {
      await confirmToken(trx, id);
      const response = scene.ask('DELETE', `${BOXES}/${box.name}/service-urls/${id}`);
      await untilSomebodyWaits(owner.db);
      await trx.selectFrom('boxes').select('id').where('id', '=', box.id).forNoKeyUpdate().noWait().execute();
      return { deleted: response };
    });
    expect((await deleted).status).toBe(204);
  });
});

describe('a service URL', () => {
  it('has a token that is stored as a hash, for an hour', async () => {
    const { status, body } = await ask({ port: 8000 });
    const base = `http://8000--${box.id}.${DOMAIN}:${scene.port}/`;
    expect([status, Object.keys(body)]).toEqual([200, ['service_url', 'browser_url', 'token', 'expires_at']]);
    expect(body.service_url).toBe(base);
    expect(body.browser_url).toMatch(/^.*\/\?sallyport_code=[\w-]{43}$/);
    expect(body.token).toMatch(/^sp_sv_/);
    const left = Date.parse(body.expires_at) - Date.now();
    expect(Math.abs(left - 3_600_000)).toBeLessThan(60_000);
    const [row] = await rows();
    const code = body.browser_url.split('=')[1];
    expect([row?.hash, row?.code_hash]).toEqual([hashKey(body.token), hashKey(code)]);
    const stored = JSON.stringify(row);
    for (const secret of [body.token, code]) expect(stored).not.toContain(secret);
    const listed = await scene.ask('GET', `${BOXES}/${box.name}/service-urls`);
    expect(listed.body.service_urls).toEqual([
      {
        ...{ id: row?.id, port: 8000, created_by: row?.created_by },
        ...{ created_at: row?.created_at.toISOString(), expires_at: body.expires_at },
      },
    ]);
    const events = JSON.stringify(
      await scene.api.database.owner.db.selectFrom('audit_events').selectAll().execute(),
    );
    expect(events).toContain('create_sandbox_service_url');
    for (const secret of [body.token, code]) expect(events).not.toContain(secret);
  });

  it('of the key of a caller that expires ends with it', async () => {
    const { text: key, hash, shortKey } = mintKey('service');
    const expires_at = new Date(Date.now() + 120_000);
    await scene.api.database.owner.db
      .insertInto('api_keys')
      .values({
        ...{ kind: 'service', organization_id: scene.organizationId, workspace_id: scene.workspaceId },
        ...{ role: 'WORKSPACE_ADMIN', short_key: shortKey, hash, description: '', expires_at },
      } as never)
      .execute();
    const { body } = await ask({ port: 8001, expires_in_seconds: 3_600 }, box.name, { key });
    expect(body.expires_at).toBe(expires_at.toISOString());
  });

  it('has issues at the fields that clients read, and is for no port of the proxy', async () => {
    const issues = async (body: unknown): Promise<unknown> => {
      const { status, body: found } = await ask(body);
      return [status, ...found.detail.map(({ loc, type }: { loc: unknown; type: string }) => [loc, type])];
    };
    const at = (field: string) => [422, [['body', field], 'value_error']];
    for (const port of [0, -1, 65_536, 3128, 1.5, '80', null, undefined])
      expect(await issues({ port })).toEqual(at('port'));
    for (const expires_in_seconds of [59, 86_401, 1.5, '60'])
      expect(await issues({ port: 80, expires_in_seconds })).toEqual(at('expires_in_seconds'));
    for (const access of ['restricted', 'workspace', ''])
      expect(await issues({ port: 80, access })).toEqual(at('access'));
  });

  it('is for members who manage sandboxes, of their own workspace', async () => {
    const { api, organizationId, workspaceId } = scene;
    const viewer = await api.addServiceKey(organizationId, 'WORKSPACE_VIEWER', workspaceId);
    const elsewhere = await api.addServiceKey(
      organizationId,
      'WORKSPACE_ADMIN',
      await api.addWorkspace(organizationId),
    );
    expect((await ask({ port: 80 }, box.name, { key: viewer })).status).toBe(403);
    expect((await ask({ port: 80 }, box.id, { key: elsewhere })).status).toBe(404);
    expect((await ask({ port: 80 }, 'none')).status).toBe(404);
    const [row] = await rows();
    const path = `${BOXES}/${box.id}/service-urls/${row?.id}`;
    expect((await scene.ask('DELETE', path, undefined, { key: elsewhere })).status).toBe(404);
    expect((await scene.ask('DELETE', path, undefined, { key: viewer })).status).toBe(403);
    const other = await scene.create({ name: 'other' });
    expect((await scene.ask('DELETE', path.replace(box.id, other.id))).status).toBe(404);
  });

  it('is one of a hundred of its box: expired ones count no more', async () => {
    const full = await scene.create({ name: 'full' });
    const { body } = await ask({ port: 80 }, full.name);
    const [row] = (await rows()).filter(({ box_id }) => box_id === full.id);
    const more = Array.from({ length: 99 }, () => {
      const { id: _, created_at: __, ...values } = row ?? ({} as never);
      return { ...values, hash: mintKey('box_service').hash, code_hash: null };
    });
    const { db } = scene.api.database.owner;
    await db
      .insertInto('box_service_tokens')
      .values(more as never)
      .execute();
    const rejected = await ask({ port: 80 }, full.name);
    expect([rejected.status, rejected.body.detail.error]).toEqual([429, 'QuotaExceeded']);
    await db
      .updateTable('box_service_tokens')
      .set({ expires_at: new Date(0) } as never)
      .where('hash', '=', hashKey(body.token))
      .execute();
    expect((await ask({ port: 80 }, full.name)).status).toBe(200);
  });

  it('is removed with its box, and when it has expired', async () => {
    await scene.ask('DELETE', `${BOXES}/full`);
    expect((await rows()).map(({ box_id }) => box_id).every((id) => id === box.id)).toBe(true);
    const { db } = scene.api.database.owner;
    await db
      .updateTable('box_service_tokens')
      .set({ expires_at: new Date(0) } as never)
      .execute();
    const { store } = scene.api.database;
    const expireBoxes = createBoxExpiry(() => ({ machineLostAfterSeconds: undefined }));
    await expireBoxes.run({}, { store, log: { info: () => undefined } } as never);
    expect(await rows()).toEqual([]);
  });
});

it('of a box that somebody else runs is a 501', async () => {
  await using attached = await createBoxScene();
  const { name } = await attached.create();
  const { status, body } = await attached.ask('POST', `${BOXES}/${name}/service-url`, { port: 80 });
  expect([status, body.detail.error]).toEqual([501, 'NotSupported']);
});
