// Log lines of deployments in a real database: what a page has, and what is removed.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  appendLogs,
  type LogQuery,
  queryLogs,
  removeExcessLines,
  removeOldLines,
  type StoredLine,
} from '../../../src/platform/deployments/deployment-logs.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createDeploymentScene, type Deployment, type DeploymentScene } from './deployment-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const lineOf = (
  { id, workspaceId }: Deployment,
  message: string,
  of: Partial<StoredLine> = {},
): StoredLine => ({
  ...{ deploymentId: id, workspaceId, kind: 'deploy', at: new Date(), level: 'INFO', message },
  ...of,
});
const append = (...lines: readonly StoredLine[]) => appendLogs(scene.database.store.db, lines);
const query = async ({ id, workspaceId }: Deployment, of: Partial<LogQuery> = {}) => {
  const base = { workspaceId, deploymentId: id, kind: 'deploy', limit: 10, order: 'asc' } as const;
  return (await queryLogs(scene.database.store.db, { ...base, ...of })).map(({ message }) => message);
};

describe('the lines of a deployment', () => {
  it('are read in the order in which they were stored, or the other way, after a line', async () => {
    const deployment = await scene.addDeployment();
    await append(lineOf(deployment, 'a'), lineOf(deployment, 'b'), lineOf(deployment, 'c'));
    expect(await query(deployment)).toEqual(['a', 'b', 'c']);
    expect(await query(deployment, { order: 'desc', limit: 1 })).toEqual(['c', 'b']);
    const { id: deploymentId, workspaceId } = deployment;
    const all = { workspaceId, deploymentId, kind: 'deploy', limit: 3 } as const;
    const [first] = await queryLogs(scene.database.store.db, { ...all, order: 'asc' });
    expect(await query(deployment, { after: first?.id })).toEqual(['b', 'c']);
    expect(await query(deployment, { after: first?.id, order: 'desc' })).toEqual([]);
  });

  it('are found by kind, revision, level, text and time', async () => {
    const deployment = await scene.addDeployment();
    const revisionId = await scene.addRevision(deployment);
    const at = new Date('2026-01-02T03:04:05.678Z');
    await append(
      lineOf(deployment, 'built', { kind: 'build', revisionId }),
      lineOf(deployment, 'Served 100%', { revisionId, at }),
      lineOf(deployment, 'broken', { level: 'ERROR' }),
    );
    expect(await query(deployment, { kind: 'build' })).toEqual(['built']);
    expect(await query(deployment, { revisionId })).toEqual(['Served 100%']);
    expect(await query(deployment, { level: 'WARNING' })).toEqual(['broken']);
    expect(await query(deployment, { text: 'served 100%' })).toEqual(['Served 100%']);
    expect(await query(deployment, { text: '_' })).toEqual([]);
    expect(await query(deployment, { from: at, to: at })).toEqual(['Served 100%']);
  });

  it('are never in the future, where they would hide from who follows by time what comes after them', async () => {
    const deployment = await scene.addDeployment();
    const { id: deploymentId, workspaceId } = deployment;
    const ahead = new Date(Date.now() + 3_600_000);
    await append(lineOf(deployment, 'a', { at: ahead }), lineOf(deployment, 'b', { at: ahead }));
    const page = { workspaceId, deploymentId, kind: 'deploy', limit: 10, order: 'asc' } as const;
    const last = (await queryLogs(scene.database.store.db, page)).at(-1);
    expect(last?.at.getTime()).toBeLessThan(ahead.getTime() - 3_000_000);
    await append(lineOf(deployment, 'c', { at: new Date((last?.at.getTime() ?? 0) + 1) }));
    expect(await query(deployment, { from: last?.at })).toContain('c');
  });

  it('are those of its workspace alone', async () => {
    const [deployment, other] = [await scene.addDeployment(), await scene.addDeployment()];
    await append(lineOf(deployment, 'a'));
    expect(await query({ ...deployment, workspaceId: other.workspaceId })).toEqual([]);
    expect(await query(other)).toEqual([]);
  });

  it('are left out where it is gone, or a revision is not one of it', async () => {
    const [deployment, other] = [await scene.addDeployment(), await scene.addDeployment()];
    const revisionId = await scene.addRevision(other);
    await append(
      lineOf({ ...deployment, id: randomUUID() }, 'gone'),
      lineOf(deployment, 'a', { revisionId }),
      lineOf(deployment, 'b', { revisionId: randomUUID() }),
      lineOf(deployment, 'c'),
    );
    expect(await query(deployment)).toEqual(['c']);
    await append();
  });
});

describe('lines are removed', () => {
  const sizeOf = async ({ id }: Deployment) => {
    const row = scene.database.store.db.selectFrom('deployment_log_sizes').select('bytes');
    return Number((await row.where('deployment_id', '=', id).executeTakeFirst())?.bytes ?? 0);
  };

  it('after 14 days', async () => {
    const deployment = await scene.addDeployment();
    const day = 86_400_000;
    const ago = (ms: number) => ({ at: new Date(Date.now() - ms) });
    await append(lineOf(deployment, 'old', ago(14 * day + 60_000)), lineOf(deployment, 'new', ago(13 * day)));
    expect(await sizeOf(deployment)).toBe(306);
    expect(await removeOldLines(scene.database.store.db)).toBe(false);
    expect([await query(deployment), await sizeOf(deployment)]).toEqual([['new'], 153]);
  });

  it('where those of a deployment take too much: the oldest ones', async () => {
    const { db } = scene.database.store;
    const [deployment, other] = [await scene.addDeployment(), await scene.addDeployment()];
    await append(lineOf(other, 'kept'));
    await sql`insert into deployment_logs (workspace_id, deployment_id, kind, at, level, message)
      select ${deployment.workspaceId}, ${deployment.id}, 'deploy', now(), 'INFO', n::text from generate_series(1, 6000) n`.execute(
      db,
    );
    await append(lineOf(deployment, 'last'));
    await sql`update deployment_log_sizes set bytes = 1000000 where deployment_id = ${deployment.id}`.execute(
      db,
    );
    expect(await removeExcessLines(db, 500_000)).toBe(true);
    expect(await removeExcessLines(db, 500_000)).toBe(false);
    expect(await query(deployment, { limit: 1 })).toEqual(['5001', '5002']);
    expect(await query(other)).toEqual(['kept']);
  });

  it('with a size that no line stands for', async () => {
    const { db } = scene.database.store;
    const deployment = await scene.addDeployment();
    const row = { deployment_id: deployment.id, workspace_id: deployment.workspaceId, bytes: '900000' };
    await db.insertInto('deployment_log_sizes').values(row).execute();
    expect([await removeExcessLines(db, 500_000), await removeExcessLines(db, 500_000)]).toEqual([
      true,
      false,
    ]);
  });
});
