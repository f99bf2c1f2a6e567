// Proxy profiles under concurrent writers, at their limits, and while something uses them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseDocument } from '../../../src/platform/proxy-documents/parsed-document.ts';
import { changeProfile } from '../../../src/platform/proxy-profiles/profiles.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createProfileScene, opaqueRules, type ProfileScene } from './profile-scene.ts';

let scene: ProfileScene;
beforeAll(async () => {
  scene = await createProfileScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

async function defaultsOf(workspaceId: string): Promise<readonly string[]> {
  const rows = await scene.api.database.owner.db
    .selectFrom('proxy_profiles')
    .select('name')
    .where('workspace_id', '=', workspaceId)
    .where('is_default', '=', true)
    .execute();
  return rows.map(({ name }) => name);
}

const times = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));

describe('the default of a workspace', () => {
  it('is the last one that was made it, by a creation or a change', async () => {
    const { ask, create, workspaceId } = await scene.addWorkspace();
    const first = await create('first', {}, { is_default: true });
    await create('second', {}, { is_default: true });
    expect(await defaultsOf(workspaceId)).toEqual(['second']);
    const changed = await ask('PATCH', `/${first}`, { is_default: true });
    expect([changed.body.is_default, changed.body.version]).toEqual([true, 1]);
    expect(await defaultsOf(workspaceId)).toEqual(['first']);
    await ask('PATCH', `/${first}`, { is_default: true, name: 'again' });
    expect(await defaultsOf(workspaceId)).toEqual(['again']);
    await ask('PATCH', `/${first}`, { is_default: false });
    expect(await defaultsOf(workspaceId)).toEqual([]);
  });

  it('is one, also when several callers set it at once; that of another workspace stays', async () => {
    const other = await scene.addWorkspace();
    await other.create('of another', {}, { is_default: true });
    const { ask, create, workspaceId } = await scene.addWorkspace();
    const ids = await Promise.all(times(4, (at) => create(`made ${at}`)));
    const made = times(4, (at) =>
      ask('POST', '', { name: `default ${at}`, proxy_config: {}, is_default: true }),
    );
    const changed = ids.map((id) => ask('PATCH', `/${id}`, { is_default: true }));
    const responses = await Promise.all([...made, ...changed]);
    expect(responses.map(({ status }) => status).toSorted()).toEqual([
      ...times(4, () => 200),
      ...times(4, () => 201),
    ]);
    expect(await defaultsOf(workspaceId)).toHaveLength(1);
    expect(await defaultsOf(other.workspaceId)).toEqual(['of another']);
  });

  it('is not lost by a request that is rejected', async () => {
    const { ask, create, workspaceId } = await scene.addWorkspace();
    await create('kept', {}, { is_default: true });
    const taken = await ask('POST', '', { name: 'kept', proxy_config: {}, is_default: true });
    expect([taken.status, taken.body.detail]).toEqual([409, 'A proxy profile with this name already exists']);
    expect(await defaultsOf(workspaceId)).toEqual(['kept']);
  });
});

describe('a profile', () => {
  it('that several callers replace at once takes each replacement or rejects it', async () => {
    const { ask, create } = await scene.addWorkspace();
    const id = await create('one', opaqueRules('a.example.com'));
    const responses = await Promise.all(
      times(8, (at) => ask('PATCH', `/${id}`, { proxy_config: { no_proxy: [`n${at}.example.com`] } })),
    );
    const done = responses.filter(({ status }) => status === 200);
    const rejected = responses.filter(({ status }) => status === 409);
    expect([done.length + rejected.length, done.length > 0]).toEqual([8, true]);
    for (const { body } of rejected)
      expect(body.detail).toBe(
        'The document was replaced at the same time: read the profile and send the change again',
      );
    const { body } = await ask('GET', `/${id}`);
    expect(body.version).toBe(1 + done.length);
    expect(done.map((one) => one.body.version).toSorted()).toEqual(
      times(done.length, (at) => at + 2).toSorted(),
    );
  });

  it('is not replaced by a document that is based on an earlier version', async () => {
    const { ask, create, workspaceId } = await scene.addWorkspace();
    const id = await create('one');
    await ask('PATCH', `/${id}`, { proxy_config: { no_proxy: ['a.example.com'] } });
    const document = parseDocument({}, { allowsPrivateCallbacks: true });
    const { vault, database } = scene.api;
    const replace = (basedOn: number) =>
      database.store.write((trx) =>
        changeProfile({ vault, trx, workspaceId }, id, { replacement: { document, basedOn } }),
      );
    await expect(replace(1)).rejects.toMatchObject({ kind: 'conflict' });
    expect(await replace(2)).toMatchObject({ version: 3, shown: {} });
  });

  it('has a name of its own in its workspace', async () => {
    const { ask, create } = await scene.addWorkspace();
    await create('taken');
    const id = await create('free');
    expect((await ask('PATCH', `/${id}`, { name: 'taken' })).status).toBe(409);
    await (await scene.addWorkspace()).create('taken');
    const statuses = await Promise.all(times(6, () => ask('POST', '', { name: 'raced', proxy_config: {} })));
    expect(statuses.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409, 409]);
  });

  it('is one of at most a hundred, also when several callers create them at once', async () => {
    const { ask, workspaceId } = await scene.addWorkspace();
    const row = { workspace_id: workspaceId, shown: '{}', sealed: Buffer.of(1) };
    const rows = times(97, (at) => ({ ...row, name: `profile ${at}` }));
    await scene.api.database.owner.db.insertInto('proxy_profiles').values(rows).execute();
    const made = await Promise.all(
      times(6, (at) => ask('POST', '', { name: `late ${at}`, proxy_config: {} })),
    );
    expect(made.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 409, 409, 409]);
  });

  it('is not deleted while a row uses it, and rows cannot use one of another workspace', async () => {
    const { ask, create, workspaceId } = await scene.addWorkspace();
    const { db } = scene.api.database.owner;
    await sql`create table users_of_profiles (
      workspace_id uuid not null references workspaces on delete cascade,
      proxy_profile_id uuid,
      foreign key (workspace_id, proxy_profile_id) references proxy_profiles (workspace_id, id))`.execute(db);
    const id = await create('used');
    const use = (workspace: string) =>
      sql`insert into users_of_profiles values (${workspace}, ${id})`.execute(db);
    await use(workspaceId);
    await expect(use((await scene.addWorkspace()).workspaceId)).rejects.toThrow(/foreign key/);
    const rejected = await ask('DELETE', `/${id}`);
    expect([rejected.status, rejected.body.detail]).toEqual([
      409,
      'The proxy profile is used: delete the sandboxes and deployments that use it first, or give them another one',
    ]);
    expect((await ask('GET', `/${id}`)).status).toBe(200);
    await sql`delete from workspaces where id = ${workspaceId}`.execute(db);
    expect((await sql`select from proxy_profiles where id = ${id}`.execute(db)).rows).toEqual([]);
    await sql`drop table users_of_profiles`.execute(db);
  });
});
