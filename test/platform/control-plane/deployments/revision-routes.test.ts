// `…/revisions` of a deployment: what makes one, what ends the others, and what can be deployed again.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expiredBuilds } from '../../../../src/platform/deployments/kept-builds.ts';
import { listMoves } from '../../../../src/platform/deployments/revision-moves.ts';
import { openSecrets } from '../../../../src/platform/deployments/deployment-secrets.ts';
import { registerRunner, removeRunner } from '../../../../src/platform/deployments/runners.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { type ControlPlaneScene, createControlPlaneScene, DEPLOYMENTS } from '../control-plane-scene.ts';

let scene: ControlPlaneScene;
beforeAll(async () => {
  scene = await createControlPlaneScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const one = (id: string): string => `${DEPLOYMENTS}/${id}`;
const patch = (id: string, body: unknown) => scene.ask('PATCH', one(id), body);
const statusesOf = async (id: string): Promise<readonly string[]> => {
  const { body } = await scene.ask('GET', `${one(id)}/revisions`);
  return body.resources.map(({ status }: { readonly status: string }) => status);
};

/** A deployment with a source that waits for a builder. */
async function createQueued(): Promise<string> {
  const { id } = await scene.create();
  const source_tarball_path = await scene.upload(id);
  const change = { revision_source: 'internal_source', source_revision_config: { source_tarball_path } };
  expect((await patch(id, change)).status).toBe(200);
  return id;
}

async function createDeployed(): Promise<{ readonly id: string; readonly revisionId: string }> {
  const id = await createQueued();
  const revisionId = await scene.build(id);
  await scene.move(revisionId, 'DEPLOYING', 'DEPLOYED');
  return { id, revisionId };
}

describe('a revision', () => {
  it('is queued with its source, built and deployed, and every move is written', async () => {
    const { id, revisionId } = await createDeployed();
    expect(await statusesOf(id)).toEqual(['DEPLOYED', 'SKIPPED']);
    const moves = await listMoves(scene.api.database.store.db, revisionId);
    expect(moves.map(({ to }) => to)).toEqual([
      ...['CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'],
    ]);
    expect(moves.map(({ actor }) => actor === 'system')).toEqual([
      false,
      false,
      true,
      true,
      true,
      true,
      true,
    ]);
    expect((await scene.ask('GET', one(id))).body).toMatchObject({
      ...{ latest_revision_id: revisionId, active_revision_id: revisionId },
    });
  });

  it('ends those before it: skipped where no work had begun, interrupted otherwise', async () => {
    const id = await createQueued();
    await patch(id, { source_revision_config: { source_tarball_path: await scene.upload(id) } });
    await scene.build(id);
    await patch(id, { source_revision_config: { source_tarball_path: await scene.upload(id) } });
    expect(await statusesOf(id)).toEqual(['QUEUED', 'INTERRUPTED', 'SKIPPED', 'SKIPPED']);
    const { body } = await scene.ask('GET', `${one(id)}/revisions?status=SKIPPED,INTERRUPTED&limit=1`);
    expect(body.resources).toMatchObject([
      {
        status: 'INTERRUPTED',
        status_reason: expect.stringMatching(/^a newer revision came: [\da-f-]{36}$/),
      },
    ]);
    expect(body.offset).toBe(1);
    const wrong = await scene.ask('GET', `${one(id)}/revisions?status=SKIPPED,NO`);
    expect([wrong.status, wrong.body.detail[0].loc]).toEqual([422, ['query', 'status']]);
  });

  it('is made by a POST, of what it names and of the deployment', async () => {
    const { id, revisionId } = await createDeployed();
    const made = await scene.ask('POST', `${one(id)}/revisions`, {
      ...{ source_revision_config: {}, secrets: [{ name: 'A', value: 'x' }] },
      source_config: { resource_spec: { cpu: 2 } },
    });
    expect([made.status, made.body.deployment_id]).toEqual([201, id]);
    // With the build of the one before it, which is made of the same.
    expect(made.body.status).toBe('AWAITING_DEPLOY');
    const { body } = await scene.ask('GET', one(id));
    expect([body.latest_revision_id, body.active_revision_id]).toEqual([made.body.id, revisionId]);
    const missing = await scene.ask('POST', `${one(id)}/revisions`, {});
    expect([missing.status, missing.body.detail[0].loc]).toEqual([422, ['body', 'source_revision_config']]);
  });

  it('is built again where its commands or its configuration are others', async () => {
    const { id } = await createDeployed();
    await patch(id, { source_config: { build_command: 'npm run other' } });
    await patch(id, { secrets: [{ name: 'A', value: 'a' }] });
    expect((await statusesOf(id))[0]).toBe('QUEUED');
    await scene.build(id);
    await patch(id, { source_revision_config: { langgraph_config_path: './other/langgraph.json' } });
    expect((await statusesOf(id))[0]).toBe('QUEUED');
  });

  it('keeps the source where its path is null, as clients send what is not set', async () => {
    const { id, revisionId } = await createDeployed();
    const { body } = await scene.ask('GET', one(id));
    const path = body.source_revision_config.source_tarball_path;
    const nulls = { source_tarball_path: null, image_uri: null, repo_ref: null };
    const changed = await patch(id, { source_revision_config: nulls, secrets: [{ name: 'A', value: 'a' }] });
    expect(changed.body).toMatchObject({
      ...{ active_revision_id: revisionId, source_revision_config: { source_tarball_path: path } },
    });
    expect((await statusesOf(id))[0]).toBe('AWAITING_DEPLOY');
  });

  it('keeps its secrets when a newer one has others', async () => {
    const { vault, database } = scene.api;
    const { id } = await scene.create({ secrets: [{ name: 'A', value: 'first' }] });
    await patch(id, { source_revision_config: { source_tarball_path: await scene.upload(id) } });
    const revisionId = await scene.build(id);
    await scene.move(revisionId, 'DEPLOYING', 'DEPLOYED');
    await patch(id, {
      secrets: [
        { name: 'A', value: '' },
        { name: 'B', value: 'second' },
      ],
    });
    const owner = { workspaceId: scene.workspaceId, deploymentId: id };
    const open = async (version: number) => {
      const opened = await openSecrets({ vault, db: database.store.db }, owner, version);
      return [...opened].map(([name, value]) => [name, value.reveal()]);
    };
    expect(await open(1)).toEqual([['A', 'first']]);
    expect(await open(2)).toEqual([
      ['A', 'first'],
      ['B', 'second'],
    ]);
  });

  it('fails at once with a source that was never sent, and says so in its log', async () => {
    const { id } = await scene.create();
    const { body } = await scene.ask('POST', `${one(id)}/upload-url`);
    const change = { source_revision_config: { source_tarball_path: body.object_path } };
    const { latest_revision_id: revisionId } = (await patch(id, change)).body;
    expect(await statusesOf(id)).toEqual(['CREATE_FAILED', 'SKIPPED']);
    const logs = await scene.ask('POST', `/v1/projects/${id}/revisions/${revisionId}/build_logs`, {});
    const reason = 'the source was never uploaded: ask for another upload-url';
    expect(logs.body.logs).toMatchObject([{ level: 'ERROR', message: reason }]);
    // The address is spent.
    expect((await scene.put(body.upload_url, 'late')).status).toBe(409);
  });

  it.each([
    ['foreign', async () => scene.upload((await scene.create()).id), /must be an object_path/],
    ['unknown', async () => randomUUID(), /must be an object_path/],
    ['empty', async () => '', /must be an object_path/],
    [
      'used',
      async (id: string) => (await scene.ask('GET', one(id))).body.source_revision_config.source_tarball_path,
      /was used/,
    ],
  ])('is rejected with a path that is %s', async (_, pathOf, detail) => {
    const id = await createQueued();
    const source_tarball_path = await pathOf(id);
    const before = await statusesOf(id);
    const { status, body } = await patch(id, { source_revision_config: { source_tarball_path } });
    expect([status, body.detail]).toEqual([400, expect.stringMatching(detail)]);
    expect(await statusesOf(id)).toEqual(before);
  });

  it('is not found under another deployment', async () => {
    const { revisionId } = await createDeployed();
    const { id } = await scene.create();
    for (const [method, rest] of [
      ['GET', ''],
      ['POST', '/redeploy'],
    ] as const) {
      const { status, body } = await scene.ask(method, `${one(id)}/revisions/${revisionId}${rest}`);
      expect([status, body.detail]).toEqual([404, `Revision ID ${revisionId} not found.`]);
    }
  });
});

describe('a redeploy', () => {
  const redeploy = (id: string, revisionId: string) =>
    scene.ask('POST', `${one(id)}/revisions/${revisionId}/redeploy`);

  it('is a new revision with the build of the old one, and what it was made of', async () => {
    const { id, revisionId: first } = await createDeployed();
    const original = (await scene.ask('GET', one(id))).body.source_revision_config;
    await patch(id, { source_revision_config: { source_tarball_path: await scene.upload(id) } });
    const second = await scene.build(id);
    await scene.move(second, 'DEPLOYING', 'DEPLOYED');
    const { status, body } = await redeploy(id, first);
    expect([status, body.active_revision_id, body.source_revision_config]).toEqual([200, second, original]);
    expect(body.latest_revision_id).not.toBe(first);
    expect((await statusesOf(id))[0]).toBe('AWAITING_DEPLOY');
    const { record } = await scene.lastEvent();
    expect(record.enrichments.resource_ids).toEqual([id, body.latest_revision_id]);
  });

  it('of a revision that was never built is rejected', async () => {
    const id = await createQueued();
    const { body } = await scene.ask('GET', one(id));
    const refused = await redeploy(id, body.latest_revision_id);
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringMatching(/never built/)]);
  });

  it('of one whose build was removed builds its source again, while that is kept', async () => {
    const { db } = scene.api.database.owner;
    const { id, revisionId } = await createDeployed();
    await db.updateTable('builds').set({ removed_at: new Date() }).where('deployment_id', '=', id).execute();
    expect((await redeploy(id, revisionId)).status).toBe(200);
    expect((await statusesOf(id))[0]).toBe('QUEUED');
    await db.deleteFrom('deployment_uploads').where('deployment_id', '=', id).execute();
    const refused = await redeploy(id, revisionId);
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringMatching(/is kept any more/)]);
  });

  it('of one whose build is on a machine that is gone builds its source again on another one', async () => {
    const { db } = scene.api.database.store;
    const { id, revisionId } = await createDeployed();
    const lastStatus = async (): Promise<string | undefined> => (await statusesOf(id))[0];
    const forget = () =>
      db.updateTable('runners').set({ seen_at: sql<Date>`now() - interval '1 minute'` }).execute();
    await forget();
    const [uploads, config] = [db.updateTable('deployment_uploads'), { install_command: null }];
    // As in a bucket.
    await uploads.set({ machine_id: null }).where('deployment_id', '=', id).execute();
    // Without another machine, that one may come back.
    expect([(await redeploy(id, revisionId)).status, await lastStatus()]).toEqual([200, 'AWAITING_DEPLOY']);
    const other = { id: randomUUID(), machineId: randomUUID(), host: 'other', pid: 1 };
    await registerRunner(db, other);
    expect([(await redeploy(id, revisionId)).status, await lastStatus()]).toEqual([200, 'QUEUED']);
    const secrets = [{ name: 'A', value: 'b' }];
    expect((await patch(id, { source_config: config, secrets })).status).toBe(200);
    expect(await lastStatus()).toBe('QUEUED');
    // Nobody else can read a source that is on the same machine.
    await uploads.set({ machine_id: randomUUID() }).where('deployment_id', '=', id).execute();
    expect([(await redeploy(id, revisionId)).status, await lastStatus()]).toEqual([200, 'AWAITING_DEPLOY']);
    await removeRunner(db, other.id);
  });

  it('of an image deploys it again', async () => {
    const image_uri = 'registry.example.test/app:1';
    const given = { source: 'internal_docker', source_revision_config: { image_uri } };
    const { id, latest_revision_id: first } = await scene.create(given);
    expect((await redeploy(id, first)).status).toBe(200);
    expect(await statusesOf(id)).toEqual(['AWAITING_DEPLOY', 'SKIPPED']);
  });
});

describe('revisions of a deployment', () => {
  it('are kept up to a number, with the active one', async () => {
    const { id, revisionId } = await createDeployed();
    await sql`insert into revisions (workspace_id, deployment_id, number, status, source, source_config,
        source_revision_config, secrets_version)
      select workspace_id, deployment_id, n, 'SKIPPED', source, '{}', '{}', 0
      from revisions, generate_series(3, 600) n where id = ${revisionId}`.execute(
      scene.api.database.owner.db,
    );
    await patch(id, { source_revision_config: {} });
    const left = scene.api.database.owner.db
      .selectFrom('revisions')
      .select('number')
      .where('deployment_id', '=', id);
    const numbers = (await left.orderBy('number').execute()).map(({ number }) => number);
    expect([numbers.length, numbers[0], numbers[1]]).toEqual([501, 2, 102]);
    expect(await expiredBuilds(scene.api.database.store.db, 'another machine', 0)).toEqual([]);
  });
});
