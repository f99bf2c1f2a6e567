// Moves of revisions in a real database: what each writes, and what it refuses.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  endUnwanted,
  listMoves,
  moveRevision,
  SYSTEM,
} from '../../../src/platform/deployments/revision-moves.ts';
import type { RevisionStatus } from '../../../src/platform/deployments/revision-states.ts';
import { createDeploymentScene, type DeploymentScene } from './deployment-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const move = (revisionId: string, to: RevisionStatus, actor: string = SYSTEM, reason?: string) =>
  scene.database.store.write((trx) => moveRevision(trx, { revisionId, to, actor, reason }));
const eventsOf = (workspaceId: string) =>
  scene.database.owner.db
    .selectFrom('audit_events')
    .select(['operation', 'record'])
    .where('workspace_id', '=', workspaceId)
    .execute();

describe('a move', () => {
  it('is written with its time, its actor and its reason', async () => {
    const revisionId = await scene.addRevision(await scene.addDeployment());
    expect(await move(revisionId, 'AWAITING_DEPLOY', 'someone', 'why')).toBe(true);
    expect(await listMoves(scene.database.store.db, revisionId)).toEqual([
      { from: 'QUEUED', to: 'AWAITING_DEPLOY', actor: 'someone', reason: 'why', at: expect.any(Date) },
    ]);
  });

  it('that the states do not allow writes nothing', async () => {
    const deployment = await scene.addDeployment();
    const revisionId = await scene.addRevision(deployment, { status: 'DEPLOYED' });
    expect(await move(revisionId, 'DEPLOYING')).toBe(false);
    expect(await move(deployment.id, 'DEPLOYING')).toBe(false);
    expect(await listMoves(scene.database.store.db, revisionId)).toEqual([]);
    expect(await eventsOf(deployment.workspaceId)).toEqual([]);
  });

  it('of the system has an audit event without a caller', async () => {
    const deployment = await scene.addDeployment();
    const revisionId = await scene.addRevision(deployment);
    await move(revisionId, 'AWAITING_DEPLOY', 'someone');
    await move(revisionId, 'DEPLOYING');
    const events = await eventsOf(deployment.workspaceId);
    expect(events.map(({ operation }) => operation)).toEqual(['update_deployment']);
    expect(JSON.parse(events[0]?.record ?? '')).toMatchObject({
      ...{ operation_succeeded: true, api_key_id: null, user_id: null },
      enrichments: { resource_ids: [deployment.id, revisionId], request_method: null },
    });
  });

  it('to DEPLOYED makes the revision the active one', async () => {
    const deployment = await scene.addDeployment();
    const revisionId = await scene.addRevision(deployment, { status: 'DEPLOYING' });
    await move(revisionId, 'DEPLOYED');
    const row = scene.database.store.db.selectFrom('deployments').select('active_revision_id');
    expect(await row.where('id', '=', deployment.id).executeTakeFirst()).toEqual({
      active_revision_id: revisionId,
    });
  });

  it('of two at once, one wins', async () => {
    const revisionId = await scene.addRevision(await scene.addDeployment(), { status: 'DEPLOYING' });
    const outcomes = await Promise.all([
      ...(['DEPLOYED', 'DEPLOY_FAILED', 'INTERRUPTED'] as const).map((to) => move(revisionId, to)),
    ]);
    expect(outcomes.toSorted()).toEqual([false, false, true]);
    expect(await listMoves(scene.database.store.db, revisionId)).toHaveLength(1);
  });
});

describe('the end of what is not wanted', () => {
  it('spares the newest and what has ended', async () => {
    const deployment = await scene.addDeployment();
    const statuses = [
      'DEPLOYED',
      'BUILD_FAILED',
      'CREATING',
      'BUILDING',
      'AWAITING_DEPLOY',
      'QUEUED',
    ] as const;
    const ids: string[] = [];
    for (const status of statuses) ids.push(await scene.addRevision(deployment, { status }));
    const other = await scene.addRevision(await scene.addDeployment(), { status: 'BUILDING' });
    await scene.database.store.write((trx) =>
      endUnwanted(trx, { deploymentId: deployment.id, except: ids.at(-1), actor: 'a', reason: 'newer' }),
    );
    const rows = await scene.database.store.db
      .selectFrom('revisions')
      .select('status')
      .where('id', 'in', [...ids, other])
      .orderBy('created_at')
      .execute();
    const ended = ['DEPLOYED', 'BUILD_FAILED', 'SKIPPED', 'INTERRUPTED', 'SKIPPED', 'QUEUED', 'BUILDING'];
    expect(rows.map(({ status }) => status)).toEqual(ended);
  });
});
