import { randomUUID } from 'node:crypto';
import { rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sweepFiles } from '../../../../src/platform/store/files/file-sweep.ts';
import { downloadFields } from '../../../../src/platform/traces/artifacts/attachment-route.ts';
import {
  type Artifacts,
  knownObjects,
  openArtifacts,
} from '../../../../src/platform/traces/artifacts/artifacts.ts';
import { attachmentUrls, saveAttachments } from '../../../../src/platform/traces/artifacts/attachments.ts';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import { createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { createScratch } from '../../../support/scratch.ts';
import { partOf, mergeRuns } from '../store/trace-scene.ts';

let api: PlatformApi;
let artifacts: Artifacts;
let scratch: Awaited<ReturnType<typeof createScratch>>;
let workspaceId: string;
beforeAll(async () => {
  scratch = await createScratch();
  api = await createPlatformApi({ config: { data_dir: scratch.path } });
  artifacts = openArtifacts({ dataDirectory: scratch.path, traces: { artifacts: undefined } });
  workspaceId = await api.addWorkspace(await api.addOrganization());
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await scratch[Symbol.asyncDispose]();
});

async function* contentOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

async function attach(text: string, given: Partial<Record<'run_id' | 'name' | 'mime_type', string>> = {}) {
  const row = {
    ...{ run_id: randomUUID(), name: 'file', mime_type: 'text/plain', ...given },
    ...(await artifacts.write(contentOf(text))),
  };
  await api.database.store.write((trx) => saveAttachments(trx, workspaceId, [row]));
  return row;
}

async function urlsOf(runId: string, ago = 0) {
  const { db } = api.database.store;
  return (await attachmentUrls(db, workspaceId, [runId], Date.now() - ago)).get(runId);
}

describe('an attachment', () => {
  it('is downloaded by its signed address without a key, below every prefix', async () => {
    const { run_id } = await attach('<script>', {
      name: 'a/"ü\u202e\n.txt',
      mime_type: 'Text/Plain; charset=utf-8',
    });
    const urls = await urlsOf(run_id);
    expect(urls).toEqual({
      'attachment.a/"ü\u202e\n.txt': {
        presigned_url: expect.stringMatching(/^\/api\/v1\//),
        mime_type: 'text/plain',
      },
    });
    const url = Object.values(urls ?? {})[0]?.presigned_url ?? '';
    for (const path of [url, url.replace('/api/v1', ''), url.replace('/v1', '')]) {
      const response = await api.ask('GET', path);
      expect([response.status, response.text]).toEqual([200, '<script>']);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-type': 'text/plain',
        'content-disposition': "attachment; filename*=UTF-8''a_%22%C3%BC__.txt",
        'content-security-policy': "sandbox; default-src 'none'",
      });
    }
  });

  it('is refused with an expired, a changed and no signature, and gone with its row', async () => {
    const { run_id, object } = await attach('content');
    const url = (await urlsOf(run_id))?.['attachment.file']?.presigned_url ?? '';
    const expired = (await urlsOf(run_id, 3_601_000))?.['attachment.file']?.presigned_url ?? '';
    const another = await attach('other');
    for (const path of [
      expired,
      url.replace(/expires=\d/, 'expires=9'),
      url.replace(encodeURIComponent(object), encodeURIComponent(another.object)),
      url.replace(encodeURIComponent(object), '..%2F..%2Fvault-master.key'),
      '/attachments?object=x&expires=1&signature=x',
      '/attachments',
    ]) {
      const response = await api.ask('GET', path);
      expect([path, response.status]).toEqual([path, 403]);
    }
    await api.database.owner.db.deleteFrom('trace_attachments').where('run_id', '=', run_id).execute();
    expect((await api.ask('GET', url)).status).toBe(404);
  });

  it('is refused with 429 to who has tried many signatures, and open to who has a valid one', async () => {
    const { run_id } = await attach('content');
    const url = (await urlsOf(run_id))?.['attachment.file']?.presigned_url ?? '';
    const ask = async (path: string) => (await api.ask('GET', path, { peer: '192.0.2.7' })).status;
    const statuses: number[] = [];
    for (let times = 0; times < 31; times += 1) statuses.push(await ask(`${url}x`));
    expect([statuses[0], statuses.at(-1), await ask(url)]).toEqual([403, 429, 200]);
  });

  it('whose address has expired is refused, which is no failed attempt of whoever has a page that stayed open', async () => {
    const { run_id } = await attach('content');
    const expired = (await urlsOf(run_id, 3_601_000))?.['attachment.file']?.presigned_url ?? '';
    const peer = '192.0.2.8';
    const ask = async (path: string) => (await api.ask('GET', path, { peer })).status;
    const statuses = new Set<number>();
    for (let times = 0; times < 40; times += 1) statuses.add(await ask(`${expired}${times % 2 ? '' : 'x'}`));
    expect([...statuses]).toEqual([403]);
    expect(api.authenticator.hasFailedOften(peer)).toBe(false);
  });

  it('whose content is lost ends the connection, so that nobody takes nothing for the whole', async () => {
    const { run_id, object } = await attach('content');
    await artifacts.remove(object);
    const url = (await urlsOf(run_id))?.['attachment.file']?.presigned_url ?? '';
    await expect(api.ask('GET', url)).rejects.toThrow(/ENOENT/);
  });

  it('is listed for its run and its workspace alone; sent again, it is replaced', async () => {
    const first = await attach('first');
    const second = await attach('second', { run_id: first.run_id, mime_type: 'x<y' });
    expect(await urlsOf(first.run_id)).toMatchObject({
      'attachment.file': { mime_type: 'application/octet-stream' },
    });
    const { db } = api.database.store;
    expect(await attachmentUrls(db, randomUUID(), [first.run_id])).toEqual(new Map());
    expect(await attachmentUrls(db, workspaceId, [])).toEqual(new Map());
    expect(await knownObjects(db, [first.object, second.object])).toEqual(new Set([second.object]));
  });

  it('goes with its run', async () => {
    const id = randomUUID();
    const run = partOf({ id, project: { rank: 2, id: randomUUID() } });
    const { store } = api.database;
    await mergeRuns(store, workspaceId, [run]);
    await attach('content', { run_id: id });
    await postgresTraceStore.removeRuns(store.db, { workspaceId, id: run.project.id });
    expect(await urlsOf(id)).toBeUndefined();
  });

  it('is not swept; contents without a row are, when they are an hour old', async () => {
    const kept = await attach('kept');
    const [young, old] = [await artifacts.write(contentOf('young')), await artifacts.write(contentOf('old'))];
    const hourAgo = new Date(Date.now() - 3_600_001);
    const fileOf = (object: string): string => join(scratch.path, 'trace-artifacts', object);
    for (const { object } of [kept, old]) await utimes(fileOf(object), hourAgo, hourAgo);
    const known = (objects: readonly string[]) => knownObjects(api.database.store.db, objects);
    expect(await sweepFiles({ files: artifacts, known }, 3_600_000)).toBe(1);
    const left = await Array.fromAsync(artifacts.list(0));
    expect([kept, young, old].map(({ object }) => left.includes(object))).toEqual([true, true, false]);
    await rm(fileOf(kept.object));
  });
});

it('only types that run nothing keep their type in a download', () => {
  const typeOf = (mime_type: string): string => downloadFields({ name: 'a', mime_type })['Content-Type'];
  for (const type of [
    'image/png',
    'audio/mpeg',
    'video/mp4',
    'text/plain',
    'application/json',
    'application/pdf',
  ])
    expect(typeOf(type)).toBe(type);
  for (const type of [
    'text/html',
    'image/svg+xml',
    'application/xhtml+xml',
    'text/javascript',
    'text/plainx',
  ])
    expect(typeOf(type)).toBe('application/octet-stream');
});
