// What the documentation says of bodies with runs, beside what the routes accept.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  changedRun,
  postedRun,
  runBatch,
} from '../../../../src/platform/traces/ingestion/run-body-schema.ts';
import { createIngestionScene, type IngestionScene, newRun, now } from './ingestion-scene.ts';

let scene: IngestionScene;
beforeAll(async () => {
  scene = await createIngestionScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

/** Members of a run, with and without which a body is valid or not. */
const members: readonly Readonly<Record<string, unknown>>[] = [
  {},
  { id: null },
  { id: 'x' },
  { name: null, run_type: null, tags: null, end_time: null, session_name: null, trace_id: undefined },
  { name: 7 },
  { run_type: 'llm', tags: ['a', ''], start_time: now(), end_time: Date.now(), unknown: [] },
  { run_type: 'other' },
  { tags: 'a' },
  { tags: [1] },
  { tags: Array.from({ length: 1_001 }, () => '') },
  { end_time: 'yesterday' },
  { end_time: -1 },
  { end_time: {} },
  { session_name: '' },
  { session_id: 'x' },
  { reference_example_id: randomUUID() },
  { inputs: null, outputs: 'text', extra: [1], events: {}, error: null, serialized: 0.5 },
];

it('a body is valid by its schema where its route accepts it', async () => {
  const { id: _, ...unnamed } = newRun();
  for (const given of members) {
    const run = { ...newRun(), ...given };
    const rows = [
      ['POST', '/runs', postedRun, run],
      ['POST', '/runs', postedRun, { ...unnamed, ...given }],
      [
        'PATCH',
        `/runs/${randomUUID()}`,
        changedRun,
        { ...given, ...('id' in given ? {} : { id: undefined }) },
      ],
      ['POST', '/runs/batch', runBatch, { post: [run], patch: null }],
      ['POST', '/runs/batch', runBatch, { patch: [given, run] }],
    ] as const;
    for (const [method, path, schema, body] of rows) {
      const { status } = await scene.ask(method, path, { body });
      const isValid = schema.safeParse(JSON.parse(JSON.stringify(body))).success;
      expect([method, path, given, status]).toEqual([method, path, given, isValid ? 202 : 422]);
    }
  }
  for (const body of [{ post: true }, { post: [7] }, { post: {} }, [], 'x', { post: [], patch: [] }, {}]) {
    const { status } = await scene.ask('POST', '/runs/batch', { body });
    expect([body, status]).toEqual([body, runBatch.safeParse(body).success ? 202 : 422]);
  }
});

it('is in the documentation with what a run must have', async () => {
  const { body: document } = await scene.ask('GET', '/openapi.json');
  const schemaOf = (method: string, path: string) =>
    document.paths[path][method].requestBody.content['application/json'].schema;
  expect(schemaOf('post', '/api/v1/runs')).toMatchObject({ type: 'object', required: ['id'] });
  expect(schemaOf('patch', '/api/v1/runs/{run_id}').required ?? []).toEqual([]);
  const { properties } = schemaOf('post', '/api/v1/runs/batch');
  expect(JSON.stringify(properties.post)).toContain('"required":["id","trace_id","dotted_order"]');
  expect(Object.keys(schemaOf('post', '/api/v1/runs').properties)).toContain('serialized');
});
