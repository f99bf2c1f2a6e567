// A request to a box that does not run: it is started once, by who may start it, within the quotas; or the client learns why not.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readRequestHead } from '../../../../src/base/http/request-head.ts';
import { inWorkspace } from '../../../../src/platform/api/access.ts';
import { enter } from '../../../../src/platform/api/shares/admission.ts';
import { createBoxChanges } from '../../../../src/platform/sandboxes/box-changes.ts';
import { toRefusal } from '../../../../src/platform/sandboxes/gateway/refusals.ts';
import { untilRunning } from '../../../../src/platform/sandboxes/gateway/running-box.ts';
import { lockUsage } from '../../../../src/platform/sandboxes/sizes/quotas.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { untilSomebodyWaits } from './waiting-locks.ts';
import { BOXES } from '../box-scene.ts';
import { rejects } from '../fake-runtime.ts';
import { createGatewayScene, type GatewayScene } from './gateway-scene.ts';

let scene: GatewayScene;
beforeAll(async () => {
  scene = await createGatewayScene({}, { max_cpu_millicores: 1_000, default_cpu_millicores: 100 });
});
afterAll(() => scene[Symbol.asyncDispose]());

type Box = { readonly id: string; readonly name: string; readonly dataplane_url: string };

async function stopped(body: object = {}): Promise<Box> {
  const box = await scene.create(body);
  await scene.ask('POST', `${BOXES}/${box.name}/stop`, {});
  await scene.until(box.id, 'stopped');
  return box;
}

const post = ({ dataplane_url: url }: Box, key = scene.key): Promise<Response> =>
  scene.fetch(`${url}/execute`, { method: 'POST', key });

async function refusal(response: Response) {
  const { detail } = (await response.json()) as { detail: { error: string; message: string } };
  return { status: response.status, error: detail.error, message: detail.message };
}

/** Events of the audit log of starts. */
async function starts({ id }: Box): Promise<number> {
  const { rows } = await sql<{ record: string }>`
    select record::text as record from audit_events where operation = 'start_sandbox'`.execute(
    scene.api.database.owner.db,
  );
  return rows.filter(({ record }) => record.includes(id)).length;
}

describe('a stopped box', () => {
  it('is started once by several requests, which all get their response', async () => {
    const box = await stopped();
    const responses = await Promise.all([1, 2, 3, 4].map(() => post(box)));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await scene.moves(box.id)).slice(-2)).toEqual([
      'stopped>provisioning:data_plane_request',
      'provisioning>ready:started',
    ]);
    expect(scene.runtime.calls.filter(({ call, id }) => call === 'start' && id === box.id)).toHaveLength(2);
    expect(await starts(box)).toBe(1);
  });

  it('is not started by who may only read, nor by who has no key', async () => {
    const box = await stopped();
    const key = await scene.api.addServiceKey(scene.organizationId, 'WORKSPACE_VIEWER', scene.workspaceId);
    const response = await scene.fetch(`${box.dataplane_url}/download?path=/a`, { key });
    expect(await refusal(response)).toMatchObject({ status: 403, error: 'Forbidden' });
    expect((await post(box, '')).status).toBe(401);
    expect((await scene.row(box.id))?.status).toBe('stopped');
  });

  it('that a quota keeps from starting is a 429, and stays as it is', async () => {
    const box = await stopped({ cpu_millicores: 600 });
    const large = await scene.create({ cpu_millicores: 500 });
    expect(await refusal(await post(box))).toMatchObject({ status: 429, error: 'QuotaExceeded' });
    expect([(await scene.row(box.id))?.status, await starts(box)]).toEqual(['stopped', 0]);
    await scene.ask('DELETE', `${BOXES}/${large.name}`);
  });

  it('is locked behind its workspace, as by every other write: none of two waits for the other', async () => {
    const box = await stopped();
    const { store, owner } = scene.api.database;
    const sent = await store.write(async (trx) => {
      await lockUsage(trx, scene.workspaceId);
      const response = post(box);
      await untilSomebodyWaits(owner.db);
      await trx.selectFrom('boxes').select('id').where('id', '=', box.id).forNoKeyUpdate().noWait().execute();
      return { response };
    });
    expect((await sent.response).status).toBe(200);
  });

  it('that is not ready in time is a 503 that says when to ask again, and goes on to start', async () => {
    const box = await stopped();
    const begun = Promise.withResolvers<void>();
    const starting = Promise.withResolvers<void>();
    scene.runtime.onCall = ({ call, id }) => {
      if (call !== 'start' || id !== box.id) return undefined;
      begun.resolve();
      return starting.promise;
    };
    const { admission } = scene.api;
    const head = readRequestHead({ rawHeaders: ['X-Api-Key', scene.key] });
    const applicant = { head, client: { host: '127.0.0.1', port: 1 }, requestId: 'r', origin: undefined };
    const access = inWorkspace('sandboxes:manage');
    const parts = {
      ...{ admission, changes: createBoxChanges(), startWaitMs: 1 },
      writing: {
        quotas: {
          boxes: 1e6,
          cpuMillicores: 1e9,
          memoryBytes: 1e15,
          storageBytes: 1e15,
          snapshotBytes: 1e15,
        },
      },
      use: { touch: async () => true },
      machineId: (await scene.row(box.id))?.machine_id ?? '',
    };
    const granted = await enter(admission, access, applicant);
    const wanted = { ...{ id: box.id, path: '/', method: 'POST', access, granted, applicant } };
    const { signal } = new AbortController();
    const error = await untilRunning(parts, { ...wanted, signal }).catch((thrown: unknown) =>
      toRefusal(thrown),
    );
    expect(error).toMatchObject({ status: 503, name: 'ServiceUnavailable', fields: { 'Retry-After': '1' } });
    await begun.promise;
    starting.resolve();
    scene.runtime.onCall = () => undefined;
    await scene.until(box.id, 'ready');
    expect((await post(box)).status).toBe(200);
  });

  it('that cannot be started is a 400 with the reason', async () => {
    const box = await stopped();
    scene.runtime.onCall = ({ call, id }) =>
      call === 'start' && id === box.id ? rejects('failed', 'its disk is full')() : undefined;
    const { status, error, message } = await refusal(await post(box));
    scene.runtime.onCall = () => undefined;
    expect([status, error, message]).toEqual([400, 'NotReady', 'The sandbox failed: its disk is full']);
    // A failure is not started again by a request: its owner decides.
    expect((await refusal(await post(box))).status).toBe(400);
    expect((await scene.row(box.id))?.status).toBe('failed');
  });

  it('whose client leaves is started all the same, and nothing is dialled', async () => {
    const box = await stopped();
    const begun = Promise.withResolvers<void>();
    const starting = Promise.withResolvers<void>();
    scene.runtime.onCall = ({ call, id }) => {
      if (call !== 'start' || id !== box.id) return undefined;
      begun.resolve();
      return starting.promise;
    };
    const leaving = new AbortController();
    const sent = scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST', signal: leaving.signal });
    const left = sent.catch(() => 'left');
    await begun.promise;
    leaving.abort();
    expect(await left).toBe('left');
    starting.resolve();
    scene.runtime.onCall = () => undefined;
    await scene.until(box.id, 'ready');
    expect(scene.runtime.calls.filter(({ call, id }) => call === 'connect' && id === box.id)).toEqual([]);
    expect(scene.logged.filter((line) => line.includes('could not be decided'))).toEqual([]);
  });
});

describe('a box', () => {
  it('that is being deleted is a 400', async () => {
    const box = await scene.create({});
    const removing = Promise.withResolvers<void>();
    scene.runtime.onCall = ({ call, id }) =>
      call === 'remove' && id === box.id ? removing.promise : undefined;
    const deleted = scene.ask('DELETE', `${BOXES}/${box.name}`);
    await scene.until(box.id, 'deleting');
    expect(await refusal(await post(box))).toMatchObject({ status: 400, error: 'NotReady' });
    removing.resolve();
    scene.runtime.onCall = () => undefined;
    await deleted;
    expect((await post(box)).status).toBe(404);
  });

  it('on another machine is a 421, and one that somebody else runs a 501', async () => {
    const box = await scene.create({});
    const { db } = scene.api.database.owner;
    const move = (set: object) => db.updateTable('boxes').set(set).where('id', '=', box.id).execute();
    const machine_id = (await scene.row(box.id))?.machine_id;
    await move({ machine_id: '00000000-0000-4000-8000-000000000001' });
    expect(await refusal(await post(box))).toMatchObject({ status: 421, error: 'Misdirected' });
    await move({ machine_id, runtime: 'attached' });
    expect(await refusal(await post(box))).toMatchObject({ status: 501, error: 'NotSupported' });
    const shown = await scene.ask('GET', `${BOXES}/${box.name}`);
    expect(shown.body.dataplane_url).toBeNull();
    await move({ machine_id: '00000000-0000-4000-8000-000000000001', runtime: 'attached' });
  });
});
