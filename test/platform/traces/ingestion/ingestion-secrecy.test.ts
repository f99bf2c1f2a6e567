// What runs contain is that of a tenant's users: no refusal of a request repeats it, and neither the log nor the audit log has any of it.
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createIngestionScene, type IngestionScene, newRun } from './ingestion-scene.ts';
import { encodeParts, MULTIPART, partsOf } from './multipart-body.ts';

let scene: IngestionScene;
beforeAll(async () => {
  scene = await createIngestionScene({ max_sent_bytes: 100_000, max_attachments: 1 });
});
afterAll(() => scene[Symbol.asyncDispose]());

const SECRET = `hush-${randomUUID()}`;
/** A run that has the secret wherever a client may write. */
const secretRun = () =>
  newRun({
    ...{ name: SECRET, tags: [SECRET], session_name: SECRET, error: SECRET, inputs: { [SECRET]: SECRET } },
    ...{ outputs: { messages: [SECRET] }, events: [{ name: SECRET }], serialized: { [SECRET]: 1 } },
    extra: { metadata: { [SECRET]: SECRET, thread_id: SECRET } },
  });

const sendJson = (path: string, raw: string) => scene.ask('POST', path, { raw });
const sendMultipart = (raw: Uint8Array, headers = {}) =>
  scene.ask('POST', '/runs/multipart', { raw, headers: { 'content-type': MULTIPART, ...headers } });
const attachmentOf = (id: string, name: string) => ({
  name: `attachment.${id}.${name}`,
  body: SECRET,
  fields: [`Content-Type: text/${SECRET}; length=${SECRET.length}`],
});

it('what is wrong with runs is said without what they contain', async () => {
  const run = secretRun();
  const text = JSON.stringify(run);
  const parts = partsOf('post', run);
  const refused = await Promise.all([
    ...['/runs', '/runs/batch'].map((path) => sendJson(path, `${text}${SECRET}`)),
    sendJson('/runs', JSON.stringify({ ...run, run_type: SECRET, start_time: SECRET, tags: SECRET })),
    sendJson('/runs', JSON.stringify({ ...run, dotted_order: SECRET, trace_id: SECRET, session_id: SECRET })),
    sendJson('/runs/batch', JSON.stringify({ post: [{ ...run, id: SECRET }], patch: SECRET })),
    sendJson('/runs', JSON.stringify({ ...run, inputs: SECRET.repeat(3_000) })),
    scene.ask('PATCH', `/runs/${run.id}`, { raw: `{"inputs":"${SECRET}` }),
    sendMultipart(encodeParts([...parts, { name: SECRET, body: SECRET }])),
    sendMultipart(encodeParts([...parts, { name: `post.${run.id}.${SECRET}`, body: SECRET }])),
    sendMultipart(encodeParts([...parts, { name: `post.${run.id}.outputs`, body: `["${SECRET}"` }])),
    sendMultipart(encodeParts([...parts, { name: `feedback.${randomUUID()}`, body: `{"key":"${SECRET}"}` }])),
    sendMultipart(encodeParts([...parts, attachmentOf(run.id, 'a'), attachmentOf(run.id, 'b')])),
    sendMultipart(encodeParts(parts).subarray(0, -20)),
    sendMultipart(gzipSync(encodeParts(parts)).subarray(0, -20), { 'content-encoding': 'gzip' }),
    scene.ask('POST', '/runs/query', { body: { filter: `eq(${SECRET}, "${SECRET}")`, cursor: SECRET } }),
  ]);
  expect(refused.map(({ status }) => status)).toEqual([
    ...[422, 422, 422, 422, 422, 413, 422],
    ...[422, 422, 422, 422, 422, 400, 400, 422],
  ]);
  expect(refused.map(({ text: body }) => body).filter((body) => body.includes(SECRET))).toEqual([]);
  expect(await scene.read(run.id)).toBeUndefined();
});

it('runs that are stored, read and removed leave nothing of them in the log and the audit log', async () => {
  const [one, two] = [secretRun(), secretRun()];
  expect((await sendJson('/runs', JSON.stringify(one))).status).toBe(202);
  const feedback = { trace_id: two.id, key: SECRET, comment: SECRET, value: SECRET };
  const parts = [
    ...partsOf('post', two),
    attachmentOf(two.id, 'a'),
    { name: `feedback.${randomUUID()}`, body: JSON.stringify(feedback) },
  ];
  expect((await sendMultipart(encodeParts(parts))).status).toBe(202);
  const found = await scene.ask('POST', '/runs/query', { body: { filter: `eq(name, "${SECRET}")` } });
  expect(found.body.runs).toHaveLength(2);
  const project = found.body.runs[0].session_id;
  expect((await scene.ask('DELETE', `/sessions/${project}`)).status).toBe(200);
  await scene.api.settle();
  const rows = await scene.api.database.owner.db.selectFrom('audit_events').selectAll().execute();
  const kept = [...scene.api.logged, ...rows.map((row) => JSON.stringify(row))];
  expect(rows.length).toBeGreaterThan(1);
  expect(kept.filter((line) => line.includes(SECRET))).toEqual([]);
});
