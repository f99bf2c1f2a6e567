import { randomUUID } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createIngestionScene, type IngestionScene, jsonOf, newRun, now } from './ingestion-scene.ts';
import {
  BOUNDARY,
  encodePart,
  encodeParts,
  END,
  MULTIPART,
  partsOf,
  type SentPart,
} from './multipart-body.ts';

let scene: IngestionScene;
let url: string;
beforeAll(async () => {
  const settings = {
    max_sent_bytes: 400_000,
    max_content_bytes: 8_000_000,
    max_parts: 50,
    max_attachments: 3,
  };
  scene = await createIngestionScene(settings);
  url = await scene.listen();
});
afterAll(() => scene[Symbol.asyncDispose]());

type Sent = { readonly status: number; readonly body: Record<string, unknown>; readonly headers: Headers };

async function send(
  body: RequestInit['body'],
  headers: Readonly<Record<string, string>> = {},
): Promise<Sent> {
  const response = await fetch(`${url}/multipart`, {
    ...{ method: 'POST', body, duplex: 'half' },
    headers: { 'X-Api-Key': scene.key, 'Content-Type': MULTIPART, ...headers },
  } as RequestInit);
  const { status, headers: fields } = response;
  return { status, headers: fields, body: (await response.json()) as Record<string, unknown> };
}

const sendParts = (parts: readonly SentPart[]): Promise<Sent> => send(encodeParts(parts));
const placesOf = ({ body }: Sent): unknown =>
  (body['detail'] as readonly { readonly loc: readonly unknown[] }[]).map(({ loc }) => loc.slice(0, 2));

describe('POST /runs/multipart', () => {
  it('takes runs as both clients write them, identity, gzip and zstd, whole and as a stream', async () => {
    const inputs = { text: 'ä'.repeat(100_000), q: [1, null] };
    const codings = { identity: (bytes: Buffer) => bytes, gzip: gzipSync, zstd: zstdCompressSync };
    for (const style of ['javascript', 'python'] as const)
      for (const [coding, encode] of Object.entries(codings)) {
        const run = newRun({
          inputs,
          outputs: { a: 1 },
          extra: { metadata: { k: coding } },
          events: [],
          error: 'broken',
        });
        const bytes = encode(encodeParts(partsOf('post', run), style));
        const body =
          style === 'python' ? bytes : ReadableStream.from([bytes.subarray(0, 700), bytes.subarray(700)]);
        expect([coding, await send(body, { 'Content-Encoding': coding })]).toMatchObject([
          coding,
          { status: 202, body: {} },
        ]);
        const stored = await scene.read(run.id);
        expect(stored).toMatchObject({ status: 'error', trace_id: run.trace_id, name: 'run' });
        expect(await jsonOf(stored?.inputs_json)).toBe(JSON.stringify(inputs));
        expect(await jsonOf(stored?.events_json)).toBe('[]');
      }
  });

  it('takes parts of several runs in any order, and merges a post and a patch of one run', async () => {
    const root = newRun({ inputs: { q: 1 }, outputs: { a: 0 }, session_name: 'merged' });
    const child = newRun({ inputs: { q: 2 } }, root);
    const patch = {
      ...newRun(),
      ...root,
      inputs: undefined,
      name: undefined,
      outputs: { a: 1 },
      end_time: now(),
    };
    const posted = [...partsOf('post', root), ...partsOf('post', child)];
    const patched = partsOf('patch', JSON.parse(JSON.stringify(patch)));
    const parts = [...patched, ...posted].toReversed();
    expect((await sendParts(parts)).status).toBe(202);
    const stored = await scene.read(root.id);
    expect(stored).toMatchObject({ status: 'success', name: 'run' });
    expect([await jsonOf(stored?.inputs_json), await jsonOf(stored?.outputs_json)]).toEqual([
      '{"q":1}',
      '{"a":1}',
    ]);
    expect(await scene.read(child.id)).toMatchObject({ parent_run_id: root.id, trace_id: root.id });
    expect(await scene.projectOf(root.id)).toBe('merged');
  });

  it('refuses the request for one invalid part, names it, and writes nothing', async () => {
    const run = newRun({ inputs: { q: 1 } });
    const good = partsOf('post', run);
    const id = randomUUID();
    const rows: readonly (readonly [SentPart, string])[] = [
      [{ name: `post.${run.id}.outputs`, body: '{"a":}' }, `post.${run.id}.outputs`],
      [{ name: `post.${run.id}.outputs`, body: `["${'x'.repeat(100_000)}", }` }, `post.${run.id}.outputs`],
      [{ name: `post.${run.id}.outputs`, body: '' }, `post.${run.id}.outputs`],
      [{ name: `post.${run.id}.outputs`, body: Buffer.from([0x22, 0xff, 0x22]) }, `post.${run.id}.outputs`],
      [{ name: `post.${run.id}.other`, body: '{}' }, `post.${run.id.slice(0, 3)}…`],
      [{ name: 'other', body: '{}' }, 'other'],
      [{ name: `post.${id}`, body: '[]' }, `post.${id}`],
      [{ name: `post.${id}`, body: '{"trace_id":' }, `post.${id}`],
      [{ name: `post.${id}`, body: `{"trace_id":"${id}"}` }, `post.${id}`],
      [{ name: `post.${id}`, body: JSON.stringify({ ...run, id }) }, `post.${id}`],
      [{ name: `patch.${id}.inputs`, body: '{}' }, `patch.${id}`],
      [
        { name: `post.${run.id}.outputs`, body: '{}', fields: ['Content-Type: application/json; length=3'] },
        `post.${run.id}.outputs`,
      ],
      [
        { name: `post.${run.id}.outputs`, body: '{}', fields: ['Content-Encoding: gzip'] },
        `post.${run.id}.outputs`,
      ],
    ];
    for (const [part, named] of rows) {
      const response = await sendParts([...good, part]);
      const shown = named.includes('…') ? expect.stringMatching(/…$/) : named;
      expect([named, response.status, placesOf(response)]).toEqual([named, 422, [['body', shown]]]);
    }
    expect(await scene.read(run.id)).toBeUndefined();
    expect(await scene.spooled()).toEqual([]);
  });

  it('lists what is wrong with every part', async () => {
    const runs = [newRun(), newRun()].map((run) => ({ ...run, dotted_order: 'x', run_type: 'y' }));
    const response = await sendParts(runs.flatMap((run) => partsOf('post', run)));
    const places = runs.map(({ id }) => ['body', `post.${id}`]);
    expect([response.status, placesOf(response)]).toEqual([422, places]);
    const many = Array.from({ length: 50 }, () => ({ name: `post.${randomUUID()}`, body: '{}' }));
    expect(await sendParts(many)).toMatchObject({ status: 422 });
  });

  it('refuses what is no multipart, is compressed otherwise, or is cut off', async () => {
    const whole = encodeParts(partsOf('post', newRun()));
    const rows: readonly (readonly [number, Buffer, Record<string, string>])[] = [
      [415, whole, { 'Content-Type': 'application/json' }],
      [415, whole, { 'Content-Encoding': 'br' }],
      [400, whole, { 'Content-Type': 'multipart/form-data' }],
      [400, whole.subarray(0, -10), {}],
      [400, Buffer.from('x'), {}],
      [400, whole, { 'Content-Encoding': 'gzip' }],
      [400, gzipSync(whole).subarray(0, -9), { 'Content-Encoding': 'gzip' }],
      [400, zstdCompressSync(whole).subarray(0, -9), { 'Content-Encoding': 'zstd' }],
    ];
    for (const [status, body, headers] of rows) {
      const response = await send(body, headers);
      expect([headers, response.status, Object.keys(response.body)]).toEqual([
        headers,
        status,
        ['error', 'details', 'detail'],
      ]);
    }
  });

  it('refuses a body that is too large as it is sent or without its coding, or has too many parts', async () => {
    const run = newRun();
    const noise = Array.from({ length: 20_000 }, () => randomUUID()).join('');
    const bomb = (letter: string): Buffer =>
      encodeParts([
        ...partsOf('post', run),
        { name: `post.${run.id}.inputs`, body: `"${letter.repeat(7_990_000)}"` },
      ]);
    const rows: readonly (readonly [number, Buffer, Record<string, string>])[] = [
      [413, encodeParts(partsOf('post', { ...run, inputs: noise.repeat(2) })), {}],
      [413, gzipSync(bomb('x')), { 'Content-Encoding': 'gzip' }],
      [413, zstdCompressSync(Buffer.concat([bomb('x'), bomb('x')])), { 'Content-Encoding': 'zstd' }],
      [
        413,
        encodeParts(Array.from({ length: 51 }, () => ({ name: `post.${run.id}.inputs`, body: '1' }))),
        {},
      ],
    ];
    for (const [status, body, headers] of rows)
      expect([headers, body.length, (await send(body, headers)).status]).toEqual([
        headers,
        body.length,
        status,
      ]);
    expect(await scene.read(run.id)).toBeUndefined();
  });

  it('refuses an endless part where its bytes exceed the limit, and goes on with others', async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield Buffer.concat(
        encodePart({ name: `post.${randomUUID()}.inputs`, body: '"', fields: [] }),
      ).subarray(0, -2);
      for (;;) yield Buffer.alloc(10_000, 'x');
    }
    const response = await send(ReadableStream.from(endless())).catch(() => ({ status: 413 }));
    expect(response.status).toBe(413);
    expect((await sendParts(partsOf('post', newRun()))).status).toBe(202);
    expect(await scene.spooled()).toEqual([]);
  });

  it('takes payloads of any depth and with any numbers as they are', async () => {
    for (const depth of [30_000, 99_000]) {
      const run = newRun();
      const deep = '['.repeat(depth) + '1e999, 0.10, 12345678901234567890' + ']'.repeat(depth);
      const parts = [...partsOf('post', run), { name: `post.${run.id}.outputs`, body: deep }];
      expect((await sendParts(parts)).status).toBe(202);
      expect(await jsonOf((await scene.read(run.id))?.outputs_json)).toBe(deep);
    }
    const tooDeep = { name: `post.${randomUUID()}.inputs`, body: '['.repeat(150_000) };
    expect((await sendParts([tooDeep])).status).toBe(422);
  });

  it('keeps attachments, also of a run that comes later, and those of a request that is sent again once', async () => {
    const run = newRun();
    const content = Buffer.from(Array.from({ length: 3_000 }, (_, at) => at % 256));
    const fields = ['Content-Type: image/png; length=3000'];
    const attachment = { name: `attachment.${run.id}.picture`, body: content, fields };
    for (const parts of [[attachment], [attachment], partsOf('post', run)])
      expect((await sendParts(parts)).status).toBe(202);
    const { body } = await scene.ask('GET', `/runs/${run.id}`);
    const { 'attachment.picture': link, ...others } = body.s3_urls;
    expect([link.mime_type, others]).toEqual(['image/png', {}]);
    const read = await fetch(new URL(link.presigned_url, url));
    expect(Buffer.from(await read.arrayBuffer()).equals(content)).toBe(true);
  });

  it('refuses more attachments than one request may have, and leaves none of them', async () => {
    const run = newRun();
    const before = await scene.attached();
    const attachments = Array.from({ length: 4 }, (_, at) => ({
      name: `attachment.${run.id}.number${at}`,
      body: 'x',
      fields: ['Content-Type: text/plain; length=1'],
    }));
    const { status, body } = await sendParts([...partsOf('post', run), ...attachments]);
    expect({ status, body }).toMatchObject({
      status: 422,
      body: {
        detail: [
          {
            loc: ['body', `attachment.${run.id}.number3`],
            msg: expect.stringContaining('at most 3 attachments'),
          },
        ],
      },
    });
    expect(await scene.attached()).toEqual(before);
    expect(await scene.read(run.id)).toBeUndefined();
  });

  it('keeps feedback, with what cannot be stored replaced, and that of a request that is sent again once', async () => {
    const run = newRun();
    const id = randomUUID();
    const feedback = {
      trace_id: run.id,
      key: 'helpful',
      score: true,
      comment: 'a\u0000b',
      feedback_config: {},
    };
    const part = { name: `feedback.${id}`, body: JSON.stringify(feedback) };
    for (let times = 0; times < 2; times += 1)
      expect((await sendParts([part, ...partsOf('post', run)])).status).toBe(202);
    const { body } = await scene.ask('GET', `/feedback?run=${run.id}`);
    expect(body).toMatchObject([{ id, key: 'helpful', score: 1, comment: 'a\ufffdb', trace_id: run.id }]);
  });

  it.each<[string, object | string]>([
    ['without a key', { trace_id: randomUUID() }],
    ['of a project', { session_id: randomUUID(), key: 'k' }],
    ['with another id', { id: randomUUID(), trace_id: randomUUID(), key: 'k' }],
    ['that is no JSON', '{'],
  ])('refuses feedback %s, and leaves no attachment of the request', async (_, feedback) => {
    const [run, id, before] = [newRun(), randomUUID(), await scene.attached()];
    const body = typeof feedback === 'string' ? feedback : JSON.stringify(feedback);
    const attachment = {
      name: `attachment.${run.id}.a`,
      body: 'content',
      fields: ['Content-Type: text/plain'],
    };
    const response = await sendParts([...partsOf('post', run), attachment, { name: `feedback.${id}`, body }]);
    expect([response.status, placesOf(response)]).toEqual([422, [['body', `feedback.${id}`]]]);
    expect(await scene.read(run.id)).toBeUndefined();
    expect(await scene.attached()).toEqual(before);
  });

  it('leaves no attachment where the database refuses the request', async () => {
    const before = await scene.attached();
    const run = newRun({ session_id: randomUUID() });
    const attachment = {
      name: `attachment.${run.id}.a`,
      body: 'content',
      fields: ['Content-Type: text/plain'],
    };
    expect((await sendParts([...partsOf('post', run), attachment])).status).toBe(404);
    expect(await scene.attached()).toEqual(before);
  });

  it('refuses what is over the share of a key, says when to come back, and takes nothing', async () => {
    await using small = await createIngestionScene({}, { organizationIngestBytes: 8 * 1024 * 1024 });
    const address = `${await small.listen()}/multipart`;
    const run = newRun();
    const first = Promise.withResolvers<undefined>();
    const post = (body: RequestInit['body']): Promise<Response> =>
      fetch(address, {
        ...{ method: 'POST', body, duplex: 'half' },
        headers: { 'X-Api-Key': small.key, 'Content-Type': MULTIPART },
      } as RequestInit);
    const held = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from(`--${BOUNDARY}\r\n`);
      await first.promise;
      yield encodeParts(partsOf('post', newRun())).subarray(BOUNDARY.length + 4);
    };
    const running = post(ReadableStream.from(held()));
    const refused = await post(encodeParts(partsOf('post', run)));
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, expect.any(Number)]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await small.read(run.id)).toBeUndefined();
    first.resolve(undefined);
    expect((await running).status).toBe(202);
    expect((await post(encodeParts(partsOf('post', run)))).status).toBe(202);
  });

  it('leaves one row of each run in requests that are sent again, and at once', async () => {
    const runs = Array.from({ length: 10 }, () => newRun({ inputs: { q: 1 } }));
    const post = encodeParts(runs.flatMap((run) => partsOf('post', run)));
    const patch = encodeParts(
      runs.toReversed().flatMap((run) => partsOf('patch', { ...run, end_time: now() })),
    );
    const responses = await Promise.all([post, patch, post, patch, post, patch].map((body) => send(body)));
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 202));
    const rows = await scene.api.database.store.db
      .selectFrom('trace_runs')
      .select(['id', 'status'])
      .where(
        'id',
        'in',
        runs.map(({ id }) => id),
      )
      .execute();
    expect(rows.map(({ status }) => status)).toEqual(runs.map(() => 'success'));
  });
});

it('an empty body is no multipart', async () => {
  expect((await send(END)).status).toBe(202);
  expect((await send('')).status).toBe(400);
});
