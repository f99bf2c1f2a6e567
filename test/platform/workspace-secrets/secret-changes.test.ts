// The bounds of the secrets of a workspace, and what happens when several callers change them at once.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { sql } from '../../../src/platform/store/sql.ts';
import { createSecretScene, type SecretScene } from './secret-scene.ts';

let scene: SecretScene;
beforeAll(async () => {
  scene = await createSecretScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('a change is rejected, with every issue and without effect,', () => {
  const MAX = 65_536;
  const rows: readonly (readonly [string, unknown, readonly (readonly [unknown[], string])[]])[] = [
    ['that is no list', { A: 'x' }, [[[], 'list_type']]],
    ['without a value', [{ key: 'A' }], [[[0, 'value'], 'missing']]],
    ['without a key', [{ value: 'x' }], [[[0, 'key'], 'missing']]],
    ['with an empty value', [{ key: 'A', value: '' }], [[[0, 'value'], 'string_too_short']]],
    ['with a number as its value', [{ key: 'A', value: 1 }], [[[0, 'value'], 'string_type']]],
    [
      'with a value that is too long',
      [{ key: 'A', value: 'x'.repeat(MAX + 1) }],
      [[[0, 'value'], 'string_too_long']],
    ],
    [
      'with a value that is too long in UTF-8',
      [{ key: 'A', value: 'ä'.repeat(MAX / 2 + 1) }],
      [[[0, 'value'], 'value_error']],
    ],
    [
      'with keys that are no names',
      ['', '1A', 'A-B', 'A B', 'Ä', 'A\n', 'a'.repeat(129)].map((key) => ({ key, value: 'x' })),
      Array.from({ length: 7 }, (_, at) => [[at, 'key'], 'string_pattern_mismatch'] as const),
    ],
    [
      'with a key twice',
      [
        { key: 'A', value: 'x' },
        { key: 'B', value: 'x' },
        { key: 'A', value: null },
      ],
      [[[2, 'key'], 'value_error']],
    ],
    [
      'of more than a hundred secrets',
      Array.from({ length: 101 }, (_, at) => ({ key: `A${at}`, value: 'x' })),
      [[[], 'too_long']],
    ],
  ];
  it.each(rows)('%s', async (_, changes, expected) => {
    const { status, body } = await scene.set(changes);
    expect(status).toBe(422);
    const issues = body.detail.map(({ loc, type }: { loc: unknown[]; type: string }) => [loc, type]);
    expect(issues).toEqual(expected.map(([loc, type]) => [['body', ...loc], type]));
    expect(await scene.list()).toEqual([]);
  });

  it('that a hundred keys and a value of the greatest length are not', async () => {
    const { key } = await scene.addWorkspace();
    const most = Array.from({ length: 100 }, (_, at) => ({ key: `A${at}`, value: 'x' }));
    expect((await scene.set(most, { key })).status).toBe(200);
    const longest = [{ key: `_${'9'.repeat(127)}`, value: 'x'.repeat(MAX) }];
    expect((await scene.set(longest, { key })).status).toBe(200);
    expect(await scene.list({ key })).toHaveLength(101);
  });
});

describe('a workspace', () => {
  it('has at most a thousand secrets, also when several callers create them at once', async () => {
    const { key, workspaceId } = await scene.addWorkspace();
    const rows = Array.from({ length: 990 }, (_, at) => ({
      workspace_id: workspaceId,
      key: `A${at}`,
      version: String(1_000_000 + at),
      sealed: Buffer.of(1),
    }));
    await scene.api.database.owner.db.insertInto('workspace_secrets').values(rows).execute();
    const sets = Array.from({ length: 20 }, (_, at) => scene.set([{ key: `B${at}`, value: 'x' }], { key }));
    const responses = await Promise.all(sets);
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(10);
    const rejected = responses.filter(({ status }) => status === 422);
    expect(rejected).toHaveLength(10);
    expect(rejected[0]?.body.detail).toEqual([
      {
        loc: ['body'],
        msg: 'A workspace can have at most 1000 secrets: delete some first',
        type: 'too_long',
      },
    ]);
    expect(await scene.list({ key })).toHaveLength(1000);
    const changes = [
      { key: 'A0', value: null },
      { key: 'LATER', value: 'x' },
      { key: 'A1', value: 'replaced' },
    ];
    expect((await scene.set(changes, { key })).status).toBe(200);
  });

  it('is changed by one writer at a time', async () => {
    const { key, workspaceId } = await scene.addWorkspace();
    const { owner } = scene.api.database;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: held, resolve: hold } = Promise.withResolvers<void>();
    const holder = owner.write(async (trx) => {
      await trx
        .selectFrom('workspaces')
        .select('id')
        .where('id', '=', workspaceId)
        .forNoKeyUpdate()
        .execute();
      hold();
      await released;
    });
    await held;
    onTestFinished(() => release());
    const set = scene.set([{ key: 'A', value: 'x' }], { key });
    const state = { isDone: false };
    void set.finally(() => (state.isDone = true));
    const isWaiting = async (): Promise<boolean> => {
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(owner.db);
      return rows.length > 0;
    };
    while (!state.isDone && !(await isWaiting()));
    expect(state.isDone).toBe(false);
    release();
    await holder;
    expect((await set).status).toBe(200);
  });

  it('has at most a megabyte of them', async () => {
    const { key } = await scene.addWorkspace();
    const value = 'x'.repeat(65_000);
    for (const part of [0, 1])
      expect(
        (
          await scene.set(
            Array.from({ length: 8 }, (_, at) => ({ key: `A${part}${at}`, value })),
            { key },
          )
        ).status,
      ).toBe(200);
    const { status, body } = await scene.set([{ key: 'ONE_MORE', value }], { key });
    expect([status, body.detail[0].msg]).toEqual([
      422,
      'The secrets of a workspace can have at most 1048576 bytes together, as they are stored: delete some first',
    ]);
    expect(await scene.list({ key })).not.toContain('ONE_MORE');
    const exchanged = [
      { key: 'A00', value: null },
      { key: 'ONE_MORE', value },
    ];
    expect((await scene.set(exchanged, { key })).status).toBe(200);
  });

  it('keeps all of what one of two concurrent requests stores', async () => {
    const { key, workspaceId } = await scene.addWorkspace();
    const names = ['A', 'B', 'C'];
    const changesTo = (value: string) => names.map((name) => ({ key: name, value }));
    const responses = await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        scene.set(at % 2 === 0 ? changesTo(`value ${at}`) : changesTo(`value ${at}`).toReversed(), { key }),
      ),
    );
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    const rows = await scene.api.database.owner.db
      .selectFrom('workspace_secrets')
      .select(['key', 'version'])
      .where('workspace_id', '=', workspaceId)
      .execute();
    expect(rows.map((row) => row.key).toSorted()).toEqual(names);
    const versions = rows.map(({ version }) => Number(version));
    expect(Math.max(...versions) - Math.min(...versions)).toBe(2);
  });
});
