// What other modules read of proxy profiles, and how they learn of changes.
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { requireDocument, toWholeDocument } from '../../../src/platform/proxy-documents/sealed-document.ts';
import {
  parseProfileChange,
  profileChannel,
  readDefaultProfile,
  readProfile,
  readProfileVersions,
} from '../../../src/platform/proxy-profiles/contract.ts';
import { openNotifications } from '../../../src/platform/store/postgres/notifications.ts';
import { createProfileScene, opaqueRules, type ProfileScene } from './profile-scene.ts';

let scene: ProfileScene;
beforeAll(async () => {
  scene = await createProfileScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const source = () => ({ vault: scene.api.vault, db: scene.api.database.store.db });

it('a profile is read with its opaque values, in its workspace', async () => {
  const { ask, create, workspaceId } = await scene.addWorkspace();
  const id = await create('one', opaqueRules('a.example.com'));
  await ask('PATCH', `/${id}`, { proxy_config: opaqueRules('a.example.com', { is_set: true }) });
  const read = await readProfile(source(), workspaceId, id);
  expect(read).toMatchObject({ id, name: 'one', version: 2 });
  expect(read && toWholeDocument(requireDocument(read.opened))).toEqual(opaqueRules('a.example.com'));
  const other = await scene.addWorkspace();
  expect(await readProfile(source(), other.workspaceId, id)).toBeUndefined();
  const { db } = source();
  const unknown = '00000000-0000-4000-8000-000000000000';
  expect(await readProfileVersions(db, workspaceId, [id, unknown])).toEqual(new Map([[id, 2]]));
  expect(await readProfileVersions(db, other.workspaceId, [id])).toEqual(new Map());
  expect(await readProfileVersions(db, workspaceId, [])).toEqual(new Map());
});

it('the default of a workspace is read, if it has one', async () => {
  const { create, workspaceId } = await scene.addWorkspace();
  await create('one');
  expect(await readDefaultProfile(source(), workspaceId)).toBeUndefined();
  const id = await create('two', {}, { is_default: true });
  expect(await readDefaultProfile(source(), workspaceId)).toMatchObject({ id, name: 'two' });
});

it('every process is notified of a changed document, and of nothing else', async () => {
  const { ask, create, workspaceId } = await scene.addWorkspace();
  const id = await create('one');
  const notifications = openNotifications({
    connection: scene.api.database.connection,
    ...{ onError: () => undefined, onLost: () => undefined },
  });
  onTestFinished(() => notifications.close());
  const received = Promise.withResolvers<string>();
  await notifications.subscribe(profileChannel, {
    onMessage: received.resolve,
    onMissed: () => undefined,
  });
  await ask('PATCH', `/${id}`, { name: 'renamed', is_default: true });
  await ask('PATCH', `/${id}`, { proxy_config: { rules: 1 } });
  await ask('PATCH', `/${id}`, { proxy_config: { no_proxy: ['a.example.com'] } });
  expect(parseProfileChange(await received.promise)).toEqual({ workspaceId, profileId: id, version: 2 });
});

it.each(['', 'x', '{}', '{"workspaceId":"x"}', '[]', 'null'])(
  'a notification %j of somebody else is ignored',
  (text) => expect(parseProfileChange(text)).toBeUndefined(),
);
