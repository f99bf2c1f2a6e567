// `/v1/projects/{project_id}/…_logs`, as clients follow them.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appendLogs } from '../../../../src/platform/deployments/deployment-logs.ts';
import type { LogLevel } from '../../../../src/platform/deployments/log-lines.ts';
import { type ControlPlaneScene, createControlPlaneScene } from '../control-plane-scene.ts';

let scene: ControlPlaneScene;
let id: string;
let revisionId: string;
beforeAll(async () => {
  scene = await createControlPlaneScene();
  ({ id, latest_revision_id: revisionId } = await scene.create());
  const { workspaceId } = scene;
  const line = (message: string, second: number, level: LogLevel, kind: 'build' | 'deploy') => ({
    ...{ workspaceId, deploymentId: id, revisionId, kind, level, message },
    at: new Date(Date.UTC(2026, 0, 1, 0, 0, second)),
  });
  await appendLogs(scene.api.database.store.db, [
    line('built', 0, 'INFO', 'build'),
    line('one', 1, 'DEBUG', 'deploy'),
    line('two', 2, 'ERROR', 'deploy'),
    line('three', 3, 'INFO', 'deploy'),
    { ...line('of all', 4, 'INFO', 'deploy'), revisionId: undefined },
  ]);
});
afterAll(() => scene[Symbol.asyncDispose]());

const ofRevision = (kind: string) => `/v1/projects/${id}/revisions/${revisionId}/${kind}_logs`;
const messages = async (path: string, body: object = {}): Promise<readonly string[]> =>
  (await scene.ask('POST', path, body)).body.logs.map(({ message }: { readonly message: string }) => message);

describe('the logs of a deployment', () => {
  it('are those of builds, of a revision, or of all revisions', async () => {
    expect(await messages(ofRevision('build'))).toEqual(['built']);
    expect(await messages(ofRevision('deploy'))).toEqual(['one', 'two', 'three']);
    expect(await messages(`/v1/projects/${id}/deploy_logs`)).toEqual(['one', 'two', 'three', 'of all']);
    expect(await messages(`/api-host${ofRevision('build')}`)).toEqual(['built']);
  });

  it('have an id, a time, a level and a message', async () => {
    const { body } = await scene.ask('POST', ofRevision('build'), { limit: 30, order: 'desc', future: true });
    expect(body).toEqual({
      logs: [
        {
          ...{ id: expect.stringMatching(/^\d+$/), timestamp: '2026-01-01T00:00:00.000Z' },
          ...{ level: 'INFO', message: 'built' },
        },
      ],
      next_offset: null,
    });
  });

  it('are read page by page in both orders', async () => {
    for (const order of ['asc', 'desc']) {
      const read: string[] = [];
      let offset: string | null = null;
      do {
        const { body } = await scene.ask('POST', ofRevision('deploy'), { limit: 2, order, offset });
        read.push(...body.logs.map(({ message }: { readonly message: string }) => message));
        offset = body.next_offset;
      } while (offset !== null);
      expect(read).toEqual(order === 'asc' ? ['one', 'two', 'three'] : ['three', 'two', 'one']);
    }
  });

  it('of long lines have pages of about a mebibyte, which lead to all of them', async () => {
    const { id: other } = await scene.create();
    const { workspaceId } = scene;
    const line = { workspaceId, deploymentId: other, kind: 'deploy', level: 'INFO', at: new Date() } as const;
    const all = Array.from({ length: 100 }, (_, n) => `${n} `.padEnd(16_384, 'x'));
    await appendLogs(
      scene.api.database.store.db,
      all.map((message) => ({ ...line, message })),
    );
    for (const order of ['asc', 'desc']) {
      const read: string[] = [];
      let offset: string | null = null;
      do {
        const { body, text } = await scene.ask('POST', `/v1/projects/${other}/deploy_logs`, {
          ...{ limit: 1_000, order, offset },
        });
        expect(text.length).toBeLessThan(1.1 * 1024 ** 2);
        read.push(...body.logs.map(({ message }: { readonly message: string }) => message));
        offset = body.next_offset;
      } while (offset !== null);
      expect(order === 'asc' ? read : read.toReversed()).toEqual(all);
    }
  });

  it('are filtered by level, text and time, as a text or a number', async () => {
    const at = (second: number) => Date.UTC(2026, 0, 1, 0, 0, second);
    const path = ofRevision('deploy');
    expect(await messages(path, { level: 'WARNING' })).toEqual(['two']);
    expect(await messages(path, { query: 'T' })).toEqual(['two', 'three']);
    expect(await messages(path, { start_time: at(2) })).toEqual(['two', 'three']);
    expect(await messages(path, { end_time: new Date(at(2)).toISOString() })).toEqual(['one', 'two']);
    expect(await messages(path, { start_time: '2026-01-01T01:00:02+01:00', end_time: at(2) })).toEqual([
      'two',
    ]);
  });

  it.each([
    { order: 'up' },
    { limit: 0 },
    { limit: 1_001 },
    { offset: 'x' },
    { level: 'LOUD' },
    { start_time: 'now' },
  ])('are rejected with %j', async (wrong) => {
    const { status, body } = await scene.ask('POST', ofRevision('deploy'), wrong);
    expect([status, body.detail[0].loc.slice(0, 2)]).toEqual([422, ['body', Object.keys(wrong)[0]]]);
  });

  it('of another workspace, or that do not exist, are not found', async () => {
    const none = randomUUID();
    const other = { key: scene.otherKey };
    const rows = [
      [`/v1/projects/${none}/deploy_logs`, undefined, `Deployment ID ${none} not found.`],
      [`/v1/projects/${id}/revisions/${none}/build_logs`, undefined, `Revision ID ${none} not found.`],
      [ofRevision('build'), other, `Deployment ID ${id} not found.`],
      [`/v1/projects/${id}/deploy_logs`, other, `Deployment ID ${id} not found.`],
    ] as const;
    for (const [path, as, detail] of rows) {
      const { status, body } = await scene.ask('POST', path, {}, as ?? { key: scene.key });
      expect([path, status, body.detail]).toEqual([path, 404, detail]);
    }
  });
});
