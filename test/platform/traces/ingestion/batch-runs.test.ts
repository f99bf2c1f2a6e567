import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createIngestionScene, type IngestionScene, jsonOf, newRun, now } from './ingestion-scene.ts';

let scene: IngestionScene;
beforeAll(async () => {
  scene = await createIngestionScene({ max_parts: 20 });
});
afterAll(() => scene[Symbol.asyncDispose]());

const send = (body: unknown) => scene.ask('POST', '/runs/batch', { body });
const sendText = (raw: string | Uint8Array, headers = {}) =>
  scene.ask('POST', '/api/v1/runs/batch', { raw, headers });

describe('POST /runs/batch', () => {
  it('takes posts and patches of several runs, in any order', async () => {
    const [one, two] = [newRun({ inputs: { q: 1 } }), newRun()];
    const patches = [one, two].map(({ id, trace_id, dotted_order }) => ({
      id,
      trace_id,
      dotted_order,
      end_time: now(),
      outputs: { a: id },
    }));
    const body = { unknown: [{ post: [1] }], patch: patches, post: [one, two], other: null };
    expect([(await send(body)).status, (await send({ post: null, patch: [] })).status]).toEqual([202, 202]);
    for (const { id } of [one, two]) {
      const stored = await scene.read(id);
      expect(stored).toMatchObject({ status: 'success', name: 'run' });
      expect(await jsonOf(stored?.outputs_json)).toBe(JSON.stringify({ a: id }));
    }
  });

  it('keeps the bytes of each payload, whatever they are between', async () => {
    const [one, two] = [newRun(), newRun()];
    const inputs = `{ "a" :\t[1.0, "\\u0000\\ud800", ${'['.repeat(70_000)}${']'.repeat(70_000)}] }`;
    const withInputs = (run: object): string =>
      JSON.stringify(run).replace(/}$/, `, "inputs" : ${inputs} , "outputs":null}`);
    const text = `{"post": [ ${withInputs(one)} , ${withInputs(two)} ] }`;
    for (const raw of [text, gzipSync(text)]) {
      const headers = typeof raw === 'string' ? {} : { 'content-encoding': 'gzip' };
      expect((await sendText(raw, headers)).status).toBe(202);
      for (const { id } of [one, two]) {
        const stored = await scene.read(id);
        expect([await jsonOf(stored?.inputs_json), stored?.outputs_json]).toEqual([inputs, null]);
      }
    }
  });

  it('refuses the request with every place of what is wrong, and writes nothing', async () => {
    const good = newRun();
    const { dotted_order, ...unordered } = newRun();
    const body = {
      post: [good, 1, { ...newRun(), name: 1 }, unordered],
      patch: [{ id: good.id, trace_id: randomUUID(), dotted_order }],
    };
    const response = await send(body);
    expect(response.status).toBe(422);
    expect(response.body.detail.map(({ loc }: { readonly loc: unknown }) => loc)).toEqual([
      ['body', 'post', 1],
      ['body', 'post', 2, 'name'],
      ['body', 'post', 3, 'dotted_order'],
      ['body', 'patch', 0, 'dotted_order'],
      ['body', 'patch', 0, 'trace_id'],
    ]);
    expect(await scene.read(good.id)).toBeUndefined();
    for (const [given, loc] of [
      [[], ['body']],
      [{ post: {} }, ['body', 'post']],
      [{ patch: 1 }, ['body', 'patch']],
      [{ post: true }, ['body', 'post']],
    ] as const)
      expect((await send(given)).body.detail[0].loc).toEqual(loc);
  });

  it('refuses a text that is no JSON behind runs that are fine, and more runs than the limit', async () => {
    const run = newRun();
    const text = JSON.stringify({ post: [run] });
    const response = await sendText(text.slice(0, -1));
    expect([response.status, response.body.detail[0]]).toMatchObject([
      422,
      { type: 'json_invalid', loc: ['body', text.length - 1] },
    ]);
    expect((await send({ post: Array.from({ length: 21 }, () => newRun()) })).status).toBe(413);
    expect(await scene.read(run.id)).toBeUndefined();
  });
});
