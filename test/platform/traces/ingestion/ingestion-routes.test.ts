import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createIngestionScene, type IngestionScene, jsonOf, newRun, now } from './ingestion-scene.ts';

let scene: IngestionScene;
beforeAll(async () => {
  scene = await createIngestionScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const post = (run: object, as = scene.key) => scene.ask('POST', '/runs', { body: run, key: as });
const patch = (id: string, run: object) => scene.ask('PATCH', `/runs/${id}`, { body: run });

describe('POST /runs', () => {
  it('stores a run with what follows from its payloads, below every prefix', async () => {
    for (const prefix of ['', '/api', '/api/v1']) {
      const parent = newRun();
      const run = newRun(
        {
          ...{ name: 'llm call', run_type: 'llm', tags: ['a', 'b'], session_name: 'one', status: 'ignored' },
          ...{ start_time: '2020-01-01T00:00:00', end_time: Date.now() + 60_000, unknown: { deep: [1] } },
          inputs: { q: 'x' },
          outputs: { messages: [{ usage_metadata: { input_tokens: 3, output_tokens: 4, total_cost: 0.5 } }] },
          extra: { metadata: { thread_id: 't', k: 1 }, runtime: {} },
          events: [{ name: 'start' }, { name: 'new_token', time: '2026-01-01T00:00:00.5' }],
          serialized: { id: [1] },
        },
        parent,
      );
      const response = await scene.ask('POST', `${prefix}/runs`, { body: run });
      expect([response.status, response.body]).toEqual([202, {}]);
      const stored = await scene.read(run.id);
      expect(stored).toMatchObject({
        ...{ id: run.id, trace_id: parent.id, parent_run_id: parent.id, parent_run_ids: [parent.id] },
        ...{ name: 'llm call', run_type: 'llm', tags: ['a', 'b'], status: 'success', is_root: false },
        ...{ prompt_tokens: '3', completion_tokens: '4', total_tokens: '7', total_cost: '0.500000000' },
        ...{ thread_id: 't', first_token_time: '2026-01-01T00:00:00.500000Z' },
      });
      expect(stored?.start_time.slice(0, 10)).toBe(now().slice(0, 10));
      expect(await jsonOf(stored?.serialized_json)).toBe('{"id":[1]}');
      expect(await scene.projectOf(run.id)).toBe('one');
    }
  });

  it('keeps payloads as the bytes that came, and searches them with U+0000 and lone surrogates replaced', async () => {
    const run = newRun();
    const inputs =
      '{ "a\\u0000" : "\\ud800 \\u0000",\n"n": 12345678901234567890.10, "deep": ' +
      '['.repeat(5_000) +
      ']'.repeat(5_000) +
      '}';
    const text = JSON.stringify(run).replace(/}$/, `, "inputs": ${inputs}, "error": "a\\u0000b"}`);
    expect((await scene.ask('POST', '/runs', { raw: text })).status).toBe(202);
    const stored = await scene.read(run.id);
    expect(await jsonOf(stored?.inputs_json)).toBe(inputs);
    expect(await jsonOf(stored?.error_json)).toBe('"a\\u0000b"');
    const rows = scene.api.database.store.db
      .selectFrom('trace_runs')
      .select(['inputs_pairs', 'error', 'status']);
    expect(await rows.where('id', '=', run.id).executeTakeFirst()).toMatchObject({
      ...{ error: 'a\ufffdb', status: 'error' },
      inputs_pairs: { 'a\ufffd': '\ufffd \ufffd' },
    });
  });

  it('without a project comes into the project default, and by an id into that project alone', async () => {
    const run = newRun();
    expect((await post(run)).status).toBe(202);
    expect(await scene.projectOf(run.id)).toBe('default');
    const theirs = await scene.api.ask('POST', '/sessions', {
      key: scene.other.key,
      body: { name: 'theirs' },
    });
    const refused = newRun({ session_id: theirs.body.id });
    const response = await post(refused);
    expect([response.status, response.body]).toMatchObject([404, { error: 'not_found', detail: /project/ }]);
    expect(response.body.details).toBe(response.body.detail);
    expect(await scene.read(refused.id)).toBeUndefined();
    const own = await scene.ask('POST', '/sessions', { body: { name: 'own' } });
    const placed = newRun({ session_id: own.body.id, session_name: 'ignored' });
    expect((await post(placed)).status).toBe(202);
    expect(await scene.projectOf(placed.id)).toBe('own');
  });

  it('makes a project once for many requests at once that name it first', async () => {
    const session_name = randomUUID();
    const sent = Array.from({ length: 8 }, () => newRun({ session_name }));
    const statuses = await Promise.all(sent.map(async (run) => (await post(run)).status));
    expect(new Set(statuses)).toEqual(new Set([202]));
    const found = await scene.ask('GET', `/sessions?name=${session_name}`);
    expect(found.body).toHaveLength(1);
  });

  it('refuses a run with every place of what is wrong, and writes nothing', async () => {
    const run = newRun();
    const [id, other] = [randomUUID(), randomUUID()];
    const rows: readonly (readonly [object, readonly (readonly (string | number)[])[]])[] = [
      [{ ...run, id }, [['body', 'dotted_order']]],
      [
        { ...run, id, trace_id: other, parent_run_id: other },
        [
          ['body', 'dotted_order'],
          ['body', 'trace_id'],
          ['body', 'parent_run_id'],
        ],
      ],
      [
        { ...run, id: 'x', start_time: 'x', end_time: {}, tags: [1], run_type: 'x' },
        [
          ['body', 'id'],
          ['body', 'run_type'],
          ['body', 'start_time'],
          ['body', 'end_time'],
          ['body', 'tags', 0],
        ],
      ],
      [{ ...run, dotted_order: 'x' }, [['body', 'dotted_order']]],
      [{ ...run, dotted_order: `20200101T000000000000Z${run.id}` }, [['body', 'dotted_order']]],
      [{ ...run, dotted_order: `99991231T000000000000Z${run.id}` }, [['body', 'dotted_order']]],
      [{ ...run, session_name: 'a\u0000b' }, [['body', 'session_name']]],
      [{ name: 'no id' }, [['body', 'id']]],
      [{ ...run, name: 'x'.repeat(70_000) }, [['body', 'name']]],
      [[], [['body']]],
    ];
    for (const [body, places] of rows) {
      const response = await post(body);
      const locs = response.body.detail.map(({ loc }: { readonly loc: unknown }) => loc);
      expect([JSON.stringify(body).slice(0, 200), response.status, locs]).toEqual([
        JSON.stringify(body).slice(0, 200),
        422,
        places,
      ]);
      expect(response.body).toMatchObject({ error: 'invalid_input', details: response.body.detail });
    }
    expect([await scene.read(run.id), await scene.read(id)]).toEqual([undefined, undefined]);
  });

  it('refuses a run that is older than runs are kept, by whatever request it is sent', async () => {
    await using short = await createIngestionScene({ retention_days: 30 });
    const of = (days: number) => {
      const run = newRun();
      const start = new Date(Date.now() - days * 86_400_000)
        .toISOString()
        .replaceAll(/[-:.]/g, '')
        .slice(0, 18);
      return { ...run, dotted_order: `${start}000Z${run.id}` };
    };
    const [young, old] = [of(29), of(31)];
    const send = async (run: object): Promise<readonly number[]> => [
      (await short.ask('POST', '/runs', { body: run })).status,
      (await short.ask('POST', '/runs/batch', { body: { post: [run] } })).status,
    ];
    expect([await send(young), await send(old)]).toEqual([
      [202, 202],
      [422, 422],
    ]);
    expect((await short.ask('POST', '/runs', { body: old })).body.detail).toMatchObject([
      { loc: ['body', 'dotted_order'], msg: /more than 30 days ago/ },
    ]);
  });

  it('refuses a text that is no JSON at its first wrong byte, and one of another type', async () => {
    for (const [raw, position] of [
      ['{"id":}', 6],
      ['{"inputs": {"a": 01}}', 18],
      ['', 0],
      ['{"id": "x"', 10],
      ['{"a":"\xff"}', undefined],
    ] as const) {
      const response = await scene.ask('POST', '/runs', { raw: Buffer.from(raw, 'latin1') });
      expect([raw, response.status, response.body?.detail[0].type]).toEqual([raw, 422, 'json_invalid']);
      if (position !== undefined)
        expect([raw, response.body.detail[0].loc]).toEqual([raw, ['body', position]]);
    }
    const headers = { 'content-type': 'text/plain' };
    expect((await scene.ask('POST', '/runs', { raw: '{}', headers })).status).toBe(415);
  });

  it('spools a large payload, and leaves no file', async () => {
    const run = newRun();
    const inputs = { noise: Array.from({ length: 60_000 }, () => randomUUID()), last: 'found' };
    expect((await post({ ...run, inputs })).status).toBe(202);
    const stored = await scene.read(run.id);
    expect(await jsonOf(stored?.inputs_json)).toBe(JSON.stringify(inputs));
    expect(stored?.inputs_json?.length).toBeLessThan(JSON.stringify(inputs).length * 0.7);
    expect(await scene.spooled()).toEqual([]);
  });
});

describe('who sends runs', () => {
  it('needs the permission runs:create, and a key', async () => {
    const organizationId = await scene.api.addOrganization();
    const workspaceId = await scene.api.addWorkspace(organizationId);
    const viewer = await scene.api.addServiceKey(organizationId, 'WORKSPACE_VIEWER', workspaceId);
    const run = newRun();
    expect((await post(run, viewer)).status).toBe(403);
    expect((await scene.api.ask('PATCH', `/runs/${run.id}`, { key: viewer, body: {} })).status).toBe(403);
    expect((await scene.api.ask('POST', '/runs', { body: run })).status).toBe(401);
    expect(await scene.read(run.id, workspaceId)).toBeUndefined();
  });

  it('changes no run of another workspace that has the same id', async () => {
    const run = newRun({ outputs: { mine: 1 } });
    expect((await post(run)).status).toBe(202);
    expect((await post({ ...run, outputs: { theirs: 1 } }, scene.other.key)).status).toBe(202);
    const [mine, theirs] = [await scene.read(run.id), await scene.read(run.id, scene.other.workspaceId)];
    expect([await jsonOf(mine?.outputs_json), await jsonOf(theirs?.outputs_json)]).toEqual([
      '{"mine":1}',
      '{"theirs":1}',
    ]);
  });
});

describe('PATCH /runs/{id}', () => {
  it('ends alike before and after its POST, also without a place of its own', async () => {
    const end = { end_time: now(), outputs: { a: 1 } };
    for (const isFirst of [true, false]) {
      const run = newRun({ session_name: 'patched', inputs: { q: 1 }, outputs: { a: 0 } });
      const steps = [() => post(run), () => patch(run.id, end)];
      for (const step of isFirst ? steps.toReversed() : steps) expect((await step()).status).toBe(202);
      const stored = await scene.read(run.id);
      expect([await jsonOf(stored?.outputs_json), await jsonOf(stored?.inputs_json)]).toEqual([
        '{"a":1}',
        '{"q":1}',
      ]);
      expect(stored).toMatchObject({ status: 'success', name: 'run', dotted_order: run.dotted_order });
      expect(await scene.projectOf(run.id)).toBe('patched');
    }
  });

  it('refuses another id than that of its path, and a path without one', async () => {
    const id = randomUUID();
    const response = await patch(id, { id: randomUUID() });
    expect([response.status, response.body.detail[0].loc]).toEqual([422, ['body', 'id']]);
    expect((await patch('x', {})).status).toBe(422);
  });

  it('leaves one row of requests that are sent again and at once', async () => {
    const run = newRun({ inputs: { q: 1 } });
    const sends = [() => post(run), () => post(run), () => patch(run.id, { error: 'broken' })];
    const sent = await Promise.all([...sends, ...sends].map((send) => send()));
    expect(sent.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 202));
    const rows = scene.api.database.store.db.selectFrom('trace_runs').select(['status']);
    expect(await rows.where('id', '=', run.id).execute()).toEqual([{ status: 'error' }]);
  });
});
