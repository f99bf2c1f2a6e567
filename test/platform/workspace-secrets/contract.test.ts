// What other modules read of the secrets of a workspace.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listSecretNames, openSecrets } from '../../../src/platform/workspace-secrets/contract.ts';
import { createSecretScene, type SecretScene } from './secret-scene.ts';

let scene: SecretScene;
beforeAll(async () => {
  scene = await createSecretScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

async function open(workspaceId: string, names: readonly string[]) {
  const { vault, database } = scene.api;
  const opened = await openSecrets({ vault, db: database.store.db }, workspaceId, names);
  return [...opened].map(([name, value]) => [name, value.reveal()]).toSorted();
}

describe('the secrets of a workspace', () => {
  it('open by their names, with the values that were set last', async () => {
    const { key, workspaceId } = await scene.addWorkspace();
    await scene.set(
      [
        { key: 'A', value: 'first' },
        { key: 'B', value: 'of B, with ümläuts and 🔑' },
        { key: 'C', value: 'of C' },
      ],
      { key },
    );
    await scene.set([{ key: 'A', value: 'second' }], { key });
    expect(await open(workspaceId, ['A', 'B', 'ABSENT', 'a'])).toEqual([
      ['A', 'second'],
      ['B', 'of B, with ümläuts and 🔑'],
    ]);
    expect(await open(workspaceId, [])).toEqual([]);
    expect(await listSecretNames(scene.api.database.store.db, workspaceId)).toEqual(['A', 'B', 'C']);
    expect(await open((await scene.addWorkspace()).workspaceId, ['A', 'B', 'C'])).toEqual([]);
  });

  it('have a version that no other value has, so that an earlier value does not open in the place of a later one', async () => {
    const { key, workspaceId } = await scene.addWorkspace();
    const { db } = scene.api.database.owner;
    const read = () =>
      db
        .selectFrom('workspace_secrets')
        .select(['version', 'sealed'])
        .where('workspace_id', '=', workspaceId)
        .executeTakeFirstOrThrow();
    await scene.set([{ key: 'A', value: 'first' }], { key });
    const first = await read();
    await scene.set([{ key: 'A', value: null }], { key });
    await scene.set([{ key: 'A', value: 'second' }], { key });
    expect(Number((await read()).version)).toBeGreaterThan(Number(first.version));
    const restore = db.updateTable('workspace_secrets').set({ sealed: first.sealed });
    await restore.where('workspace_id', '=', workspaceId).execute();
    await expect(open(workspaceId, ['A'])).rejects.toThrow(
      `the workspace secret A of ${workspaceId} was changed or moved: it does not open`,
    );
  });
});
