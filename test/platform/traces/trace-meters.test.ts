// The series of traces as Prometheus reads them, over the routes that clients send to.
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createProcessMetrics } from '../../../src/platform/api/metrics.ts';
import { createTraces } from '../../../src/platform/traces/module.ts';
import { postgresTraceStore } from '../../../src/platform/traces/store/postgres-trace-store.ts';
import { TraceMeters } from '../../../src/platform/traces/trace-meters.ts';
import { createIngestionScene, type IngestionScene, newRun, now } from './ingestion/ingestion-scene.ts';
import { encodeParts, MULTIPART, partsOf } from './ingestion/multipart-body.ts';

const meters = new TraceMeters();
const metrics = createProcessMetrics({
  pools: () => ({}),
  onError: (error) => {
    throw error;
  },
});
let scene: IngestionScene;
beforeAll(async () => {
  scene = await createIngestionScene({}, {}, [createTraces(meters)]);
  meters.open(metrics, () => postgresTraceStore.countPartitions(scene.api.database.store.db));
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const PREFIX = 'sallyport_platform_trace_';

/** By their lines, without the prefix. */
async function read(): Promise<ReadonlyMap<string, number>> {
  const lines = (await metrics.read()).split('\n').filter((line) => line.startsWith(PREFIX));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(PREFIX.length, at), Number(line.slice(at + 1))];
    }),
  );
}

it('counts runs, bytes, attachments and feedback once they are stored, and what was refused by its reason', async () => {
  const run = newRun({ inputs: { q: 'x'.repeat(2_000) } });
  const text = JSON.stringify(run);
  const sent = gzipSync(text);
  const ask = (method: string, path: string, raw: string | Uint8Array, headers: Record<string, string>) =>
    scene.ask(method, path, { raw, headers });
  const json = { 'content-type': 'application/json' };
  expect((await ask('POST', '/runs', sent, { ...json, 'content-encoding': 'gzip' })).status).toBe(202);
  const patch = JSON.stringify({ end_time: now() });
  expect((await ask('PATCH', `/runs/${run.id}`, patch, json)).status).toBe(202);
  const feedback = { trace_id: run.id, key: 'helpful', score: 1 };
  const parts = encodeParts([
    ...partsOf('post', newRun()),
    { name: `feedback.${randomUUID()}`, body: JSON.stringify(feedback) },
    { name: `attachment.${run.id}.photo`, body: 'abcde', fields: ['Content-Type: image/png; length=5'] },
  ]);
  expect((await ask('POST', '/runs/multipart', parts, { 'content-type': MULTIPART })).status).toBe(202);
  expect((await scene.ask('POST', '/feedback', { body: feedback })).status).toBe(200);
  const refused = [
    await ask('POST', '/runs', '{}', json),
    await ask('POST', '/runs', 'x', { ...json, 'content-encoding': 'gzip' }),
    await scene.ask('POST', '/runs', { raw: '{}', headers: json, key: 'none' }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([422, 400, 401]);
  const found = await read();
  expect(Object.fromEntries(found)).toMatchObject({
    ...{ 'runs_total{result="new"}': 2, 'runs_total{result="updated"}': 1 },
    'body_bytes_total{form="sent"}': sent.length + patch.length + parts.length,
    'body_bytes_total{form="content"}': expect.any(Number),
    ...{ attachment_bytes_total: 5, feedback_total: 2, days_expired_total: 0, bodies_waiting: 0 },
    merge_duration_seconds_count: 3,
    'requests_rejected_total{reason="invalid_input"}': 1,
    'requests_rejected_total{reason="not_decodable"}': 1,
    'requests_rejected_total{reason="unauthenticated"}': 1,
  });
  const content = found.get('body_bytes_total{form="content"}') ?? 0;
  expect(content).toBeGreaterThan(text.length + patch.length);
  expect(found.get('partitions')).toBeGreaterThan(0);
});

it('names its series as Prometheus expects it', async () => {
  meters.onExpired(3);
  const text = await metrics.read();
  expect((await read()).get('days_expired_total')).toBe(3);
  for (const [, name = '', type] of text.matchAll(/^# TYPE (sallyport_platform_trace_\S+) (\S+)$/gm)) {
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, 'm'));
  }
});
