// Uploads of sources: a signed address that one request may use, and the file that is there then.
import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/platform/store/sql.ts';
import { type ControlPlaneScene, createControlPlaneScene, DEPLOYMENTS } from '../control-plane-scene.ts';

let scene: ControlPlaneScene;
beforeAll(async () => {
  scene = await createControlPlaneScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

async function addUpload(as = { key: scene.key }) {
  const { id } = await scene.create({}, as);
  const { body } = await scene.ask('POST', `${DEPLOYMENTS}/${id}/upload-url`, undefined, as);
  return { id, url: String(body.upload_url), path: String(body.object_path) };
}

async function filesOf(directory: string): Promise<readonly string[]> {
  const all = await readdir(join(directory, 'deployment-sources'), { recursive: true, withFileTypes: true });
  return all.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

const rowOf = (path: string) =>
  scene.api.database.owner.db
    .selectFrom('deployment_uploads')
    .selectAll()
    .where('object_path', '=', path)
    .executeTakeFirstOrThrow();

function streamOf(...pieces: readonly string[]): ReadableStream {
  return ReadableStream.from(pieces.map((piece) => Buffer.from(piece)));
}

describe('an upload', () => {
  it('is at the address that the caller has reached the platform by', async () => {
    const { id } = await scene.create();
    const ask = async (path: string, host: string) =>
      (await scene.ask('POST', path, {}, { key: scene.key, origin: host })).body.upload_url;
    const at = `${DEPLOYMENTS}/${id}/upload-url`;
    expect(await ask(at, 'https://platform.example.com')).toMatch(
      /^https:\/\/platform\.example\.com\/v1\/deployment-uploads\/[0-9a-f-]{36}\?signature=[\w-]{43}$/,
    );
    expect(await ask(`/api-host${at}`, 'http://127.0.0.1:8080')).toMatch(
      /^http:\/\/127\.0\.0\.1:8080\/api-host\/v1\/deployment-uploads\//,
    );
  });

  it('is stored under a name of its own, with its hash', async () => {
    const { id, url, path } = await addUpload();
    const sent = await scene.put(url, 'an archive', { 'x-goog-content-length-range': '0,209715200' });
    const sha256 = createHash('sha256').update('an archive').digest('hex');
    expect([sent.status, sent.body]).toEqual([200, { size_bytes: 10, sha256 }]);
    const { operation, record } = await scene.lastEvent();
    expect([operation, record.enrichments.resource_ids]).toEqual(['update_deployment', [id]]);
    const row = await rowOf(path);
    expect(row).toMatchObject({ state: 'stored', size_bytes: '10', sha256, deployment_id: id });
    expect(row.machine_id).toBe(await readFile(join(scene.directory, 'machine-id'), 'utf8'));
    const file = join(scene.directory, 'deployment-sources', row.stored_path ?? '');
    expect(await readFile(file, 'utf8')).toBe('an archive');
  });

  it('is read without Content-Length, and with Content-Type alone', async () => {
    const { url, path } = await addUpload();
    expect((await scene.put(url, streamOf('an ', 'archive'))).status).toBe(200);
    expect((await rowOf(path)).size_bytes).toBe('10');
    const { url: other } = await addUpload();
    expect((await scene.put(other, 'x', { 'content-type': 'application/json' })).status).toBe(415);
    expect((await scene.put(other, 'x', { 'content-type': 'application/octet-stream' })).status).toBe(200);
  });

  it('works once', async () => {
    const { url, path } = await addUpload();
    expect((await scene.put(url, 'first')).status).toBe(200);
    const again = await scene.put(url, 'second');
    expect([again.status, again.body.detail]).toEqual([
      409,
      'This address was used: ask for another upload-url',
    ]);
    expect((await rowOf(path)).size_bytes).toBe('5');
  });

  it('of two requests at once is that of one, and nothing of the other is left', async () => {
    const { url, path } = await addUpload();
    const before = (await filesOf(scene.directory)).length;
    const sent = await Promise.all(['first', 'second'].map((content) => scene.put(url, content)));
    expect(sent.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    expect((await rowOf(path)).state).toBe('stored');
    expect((await filesOf(scene.directory)).length).toBe(before + 1);
  });

  it('that breaks off leaves nothing, and can be sent again', async () => {
    const { url } = await addUpload();
    const before = await filesOf(scene.directory);
    const broken = ReadableStream.from(
      (async function* () {
        yield Buffer.from('half');
        throw new Error('the client left');
      })(),
    );
    expect((await scene.put(url, broken)).status).toBeGreaterThanOrEqual(400);
    expect(await filesOf(scene.directory)).toEqual(before);
    expect((await scene.put(url, 'whole')).status).toBe(200);
  });

  it.each([
    ['with another signature', (url: string) => url.replace(/signature=.*/, `signature=${'A'.repeat(43)}`)],
    ['without a signature', (url: string) => url.replace(/signature=.*/, 'signature=')],
    ['with another id', (url: string) => url.replace(/[0-9a-f-]{36}/, randomUUID())],
  ])('is rejected %s', async (_, change) => {
    const { url } = await addUpload();
    const { status, body } = await scene.put(change(url), 'x');
    expect([status, body.detail]).toEqual([403, 'The signature of this address is not valid']);
  });

  it('is rejected with the signature of another upload', async () => {
    const [one, two] = [await addUpload(), await addUpload({ key: scene.otherKey })];
    const mixed = one.url.replace(/signature=.*/, two.url.slice(two.url.indexOf('signature=')));
    expect((await scene.put(mixed, 'x')).status).toBe(403);
  });

  it('is rejected after a quarter of an hour', async () => {
    const { url, path } = await addUpload();
    const { rows } = await sql<{ minutes: number }>`
      select extract(epoch from expires_at - created_at) / 60 as minutes from deployment_uploads where object_path = ${path}`.execute(
      scene.api.database.owner.db,
    );
    expect(Number(rows[0]?.minutes)).toBe(15);
    await sql`update deployment_uploads set expires_at = now() where object_path = ${path}`.execute(
      scene.api.database.owner.db,
    );
    const { status, body } = await scene.put(url, 'x');
    expect([status, body.detail]).toEqual([403, 'This address has expired: ask for another upload-url']);
  });

  it('that began in time is stored when it has come, however slow its client is', async () => {
    const { url, path } = await addUpload();
    const slow = ReadableStream.from(
      (async function* () {
        yield Buffer.from('half, ');
        // The platform has let it in, and has a file of it.
        await expect
          .poll(() => readdir(join(scene.directory, 'deployment-sources/incoming')))
          .toHaveLength(1);
        await sql`update deployment_uploads set expires_at = now() where object_path = ${path}`.execute(
          scene.api.database.owner.db,
        );
        yield Buffer.from('half');
      })(),
    );
    expect((await scene.put(url, slow)).status).toBe(200);
    expect(await rowOf(path)).toMatchObject({ state: 'stored', size_bytes: '10' });
    expect((await scene.put(url, 'again')).status).toBe(409);
  });

  it('of one organization, however slow and in whatever workspaces, leaves places to others', async () => {
    const { api, workspaceId } = scene;
    const rows = api.database.owner.db.selectFrom('workspaces').select('organization_id');
    const { organization_id: organization } = await rows
      .where('id', '=', workspaceId)
      .executeTakeFirstOrThrow();
    const urls: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      const workspace = await api.addWorkspace(organization);
      const key = await api.addServiceKey(organization, 'WORKSPACE_ADMIN', workspace);
      for (let one = 0; one < 4; one += 1) urls.push((await addUpload({ key })).url);
    }
    const released = Promise.withResolvers<void>();
    const slow = () =>
      ReadableStream.from(
        (async function* () {
          yield Buffer.from('x');
          await released.promise;
        })(),
      );
    const statuses: number[] = [];
    const sending = urls.map(async (url) => statuses.push((await scene.put(url, slow())).status));
    await expect.poll(() => statuses).toEqual([429, 429, 429, 429]);
    const { url } = await addUpload({ key: scene.otherKey });
    expect((await scene.put(url, 'x')).status).toBe(200);
    released.resolve();
    await Promise.all(sending);
    expect(statuses.filter((status) => status === 200)).toHaveLength(16);
  });

  it('of more than 200 MiB is rejected by its head', async () => {
    const { url, path } = await addUpload();
    const length = { 'content-length': String(200 * 1024 * 1024 + 1) };
    expect((await scene.put(url, 'x', length)).status).toBe(413);
    expect((await rowOf(path)).state).toBe('open');
  });

  it('of more than 200 MiB is rejected when it has come so far, and nothing of it is left', {
    tags: ['long'],
  }, async () => {
    const { url, path } = await addUpload();
    const before = await filesOf(scene.directory);
    const piece = Buffer.alloc(1024 * 1024);
    const endless = ReadableStream.from(
      (async function* () {
        for (let n = 0; n < 201; n += 1) yield piece;
      })(),
    );
    expect((await scene.put(url, endless)).status).toBe(413);
    expect(await filesOf(scene.directory)).toEqual(before);
    expect((await rowOf(path)).state).toBe('open');
  });

  it('is for sources alone', async () => {
    const { id } = await scene.create({
      source: 'internal_docker',
      source_revision_config: { image_uri: 'a/b' },
    });
    const { status, body } = await scene.ask('POST', `${DEPLOYMENTS}/${id}/upload-url`);
    expect([status, body.detail]).toEqual([
      400,
      expect.stringMatching(/only available for 'internal_source'/),
    ]);
  });
});
