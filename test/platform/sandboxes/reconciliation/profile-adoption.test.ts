// A changed proxy profile reaches every box that uses it, one by one; what cannot be done for one box is said there, and holds up no other.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BOXES, type BoxScene, createBoxScene } from '../box-scene.ts';

let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene();
});
beforeEach(() => scene.reset());
afterAll(() => scene[Symbol.asyncDispose]());

const PROFILES = '/v1/proxy-profiles';
const rulesFor = (host: string, value = '{TOKEN}') => ({
  rules: [{ match_hosts: [host], headers: [{ name: 'X-Key', type: 'workspace_secret', value }] }],
});

async function setSecret(key: string, value: string | null): Promise<void> {
  const { status } = await scene.ask('POST', '/api/v1/workspaces/current/secrets', [{ key, value }]);
  expect(status).toBe(200);
}

let profiles = 0;
async function addProfile(proxy_config: object, more: object = {}): Promise<string> {
  profiles += 1;
  const { body } = await scene.ask('POST', PROFILES, { name: `profile ${profiles}`, proxy_config, ...more });
  return body.id;
}

const change = (id: string, proxy_config: object) =>
  scene.ask('PATCH', `${PROFILES}/${id}`, { proxy_config });
const usersOf = async (id: string, query = '') =>
  (await scene.ask('GET', `${PROFILES}/${id}/boxes${query}`)).body;
const documentOf = (id: string): string => JSON.stringify(scene.runtime.boxes.get(id)?.policy?.document);
const adopted = (version: number) => (row: { readonly applied_profile_version: number | null }) =>
  row.applied_profile_version === version;

describe('a change of a proxy profile', () => {
  it('reaches all boxes that use it, behind their own rules, and each shows what it has acknowledged', async () => {
    const profile = await addProfile({ no_proxy: ['one.example'] });
    const boxes = [
      await scene.create({ proxy_profile_id: profile }),
      await scene.create({ proxy_profile_id: profile, proxy_config: { no_proxy: ['own.example'] } }),
    ];
    const stopped = await scene.create({ proxy_profile_id: profile });
    await scene.ask('POST', `${BOXES}/${stopped.name}/stop`);
    const other = await scene.create({ proxy_config: { no_proxy: ['own.example'] } });
    await change(profile, { no_proxy: ['two.example'] });
    for (const { id } of boxes) await scene.until(id, 'ready', adopted(2));
    await scene.until(stopped.id, 'stopped', (row) => row.profile_version === 2);
    expect(documentOf(boxes[0].id)).toBe('{"no_proxy":["two.example"]}');
    expect(documentOf(boxes[1].id)).toBe('{"no_proxy":["own.example","two.example"]}');
    const listed = await usersOf(profile);
    expect([listed.version, listed.next_cursor, listed.boxes.length]).toEqual([2, null, 3]);
    const shown = new Map(listed.boxes.map((box: { readonly id: string }) => [box.id, box]));
    expect(shown.get(boxes[0].id)).toEqual({
      ...{ id: boxes[0].id, name: boxes[0].name, status: 'ready', status_message: null },
      ...{ version: 2, acknowledged_version: 2, issues: [] },
    });
    expect(shown.get(stopped.id)).toMatchObject({ version: 2, acknowledged_version: 1 });
    expect((await usersOf(profile, '?filter=behind')).boxes.map(({ id }: { id: string }) => id)).toEqual([
      stopped.id,
    ]);
    expect((await scene.row(other.id))?.policy_version).toBe(1);
    await scene.ask('POST', `${BOXES}/${stopped.name}/start`);
    await scene.until(stopped.id, 'ready', adopted(2));
    expect((await usersOf(profile, '?filter=behind')).boxes).toEqual([]);
    expect(scene.runtime.boxes.get(stopped.id)?.version).toBe(2);
  });

  it('without a secret that a box needs leaves that box its rules, and says where; no other box waits for it', async () => {
    await setSecret('TOKEN', 'token-one');
    await setSecret('OWN', 'own-one');
    const profile = await addProfile(rulesFor('one.example'));
    const lacking = await scene.create({
      ...{ proxy_profile_id: profile, proxy_config: rulesFor('own.example', '{OWN}') },
    });
    const other = await scene.create({ proxy_profile_id: profile });
    await setSecret('OWN', null);
    await setSecret('TOKEN', 'token-two');
    const before = documentOf(lacking.id);
    await change(profile, rulesFor('two.example'));
    await scene.until(other.id, 'ready', adopted(2));
    await scene.until(lacking.id, 'ready', (row) => row.profile_problem !== null);
    const message =
      'The workspace secret OWN does not exist: set it by POST to /api/v1/workspaces/current/secrets first';
    const { body } = await scene.ask('GET', `${BOXES}/${lacking.name}`);
    expect([body.status, body.status_message, body.proxy_config_version]).toEqual([
      'ready',
      `The proxy profile has changed, and its rules before stay in effect: body.proxy_config.rules.0.headers.0.value: ${message}`,
      1,
    ]);
    expect((await scene.ask('GET', `${BOXES}/${lacking.name}/status`)).body.status_message).toBe(
      body.status_message,
    );
    const listed = (await usersOf(profile, '?filter=behind')).boxes;
    expect(listed).toMatchObject([
      {
        ...{ id: lacking.id, version: 1, acknowledged_version: 1 },
        issues: [{ loc: ['body', 'proxy_config', 'rules', 0, 'headers', 0, 'value'], msg: message }],
      },
    ]);
    expect(documentOf(lacking.id)).toBe(before);
    // The values of the time of the push, those of the box's own rules included.
    expect(
      [...(scene.runtime.boxes.get(other.id)?.policy?.secrets ?? [])].map(([, one]) => one.reveal()),
    ).toEqual(['token-two']);
    // It is tried again by itself once there is another secret.
    await setSecret('OWN', 'own-two');
    await scene.restart();
    await scene.until(lacking.id, 'ready', adopted(2));
    expect((await scene.ask('GET', `${BOXES}/${lacking.name}`)).body.status_message).toBeNull();
    const values = [...(scene.runtime.boxes.get(lacking.id)?.policy?.secrets ?? [])].map(([, one]) =>
      one.reveal(),
    );
    expect(values.toSorted()).toEqual(['own-two', 'token-two']);
  });

  it('that contradicts the rules of one box says so at that box', async () => {
    const profile = await addProfile({});
    const own = { access_control: { allow_list: ['own.example'] } };
    const one = await scene.create({ proxy_profile_id: profile, proxy_config: own });
    await change(profile, { access_control: { allow_list: ['two.example'] } });
    const row = await scene.until(one.id, 'ready', ({ profile_problem: problem }) => problem !== null);
    expect(row.profile_problem).toMatchObject([{ loc: ['body', 'proxy_config', 'access_control'] }]);
    // A change of the box that fits is all that it needs.
    await scene.ask('PATCH', `${BOXES}/${one.name}`, { proxy_config: null });
    expect(await scene.until(one.id, 'ready', adopted(2))).toMatchObject({ profile_problem: null });
  });

  it('is finished by the next process, and a sidecar that does not respond holds up its own box alone', async () => {
    const profile = await addProfile({ no_proxy: ['one.example'] });
    const boxes: { readonly id: string }[] = [];
    for (let count = 0; count < 12; count += 1) boxes.push(await scene.create({ proxy_profile_id: profile }));
    const [stuck] = boxes;
    const held = Promise.withResolvers<void>();
    let applied = 0;
    const middle = Promise.withResolvers<void>();
    scene.runtime.onCall = ({ call, id }) => {
      if (call !== 'apply') return undefined;
      applied += 1;
      if (applied === 5) middle.resolve();
      // From then on nothing comes back: the process is as good as dead.
      return applied >= 5 || id === stuck?.id ? held.promise : undefined;
    };
    await change(profile, { no_proxy: ['two.example'] });
    await middle.promise;
    scene.runtime.onCall = ({ call, id }) =>
      call === 'apply' && id === stuck?.id ? held.promise : undefined;
    const { db } = scene.api.database.owner;
    // Given to the next process at once: a lease that nobody has, the first process would take again.
    const holder = randomUUID();
    await db.updateTable('box_machines').set({ holder }).execute();
    const next = await scene.openReconciler({ holder });
    await next.pass();
    for (const { id } of boxes.slice(1)) await scene.until(id, 'ready', adopted(2));
    expect((await usersOf(profile, '?filter=behind')).boxes).toMatchObject([
      { id: stuck?.id, version: 2, acknowledged_version: 1 },
    ]);
    held.resolve();
    await scene.until(stuck?.id ?? '', 'ready', adopted(2));
    await next.close();
  });

  it('of what is the default changes no box that exists', async () => {
    const [one, two] = [await addProfile({ no_proxy: ['one.example'] }), await addProfile({})];
    const plain = await scene.create();
    await scene.ask('PATCH', `${PROFILES}/${one}`, { is_default: true });
    const first = await scene.create();
    await scene.ask('PATCH', `${PROFILES}/${two}`, { is_default: true, name: 'renamed' });
    await scene.restart();
    const last = await scene.create();
    for (const { id } of [plain, first, last]) expect((await scene.row(id))?.policy_version).toBe(1);
    expect((await scene.row(plain.id))?.proxy_profile_id).toBeNull();
    expect((await scene.row(first.id))?.proxy_profile_id).toBe(one);
    expect((await scene.ask('DELETE', `${PROFILES}/${one}`)).status).toBe(409);
    await scene.ask('PATCH', `${PROFILES}/${two}`, { is_default: false });
  });
});
