// Routes that consume their body as a stream, through the whole API: before the transaction, within their limits, and with
// the errors of every other route.
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from '../../../../src/base/schema.ts';
import { anyone, inWorkspace } from '../../../../src/platform/api/access.ts';
import { byteUpload, multipartUpload } from '../../../../src/platform/api/body/upload.ts';
import { toOpenApi } from '../../../../src/platform/api/openapi/openapi.ts';
import { defineRoute, type Route } from '../../../../src/platform/api/route.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';

const counted = z.strictObject({ sizes: z.record(z.string(), z.number()) });

let handled = 0;

/** Responds with the size of each part. */
const parts: Route = defineRoute({
  method: 'POST',
  path: '/v1/parts',
  tag: 'Test',
  summary: 'a multipart body',
  access: inWorkspace('deployments:create'),
  tracking: { operation: 'create_listener' },
  responses: { 200: counted },
  query: z.strictObject({ from: z.int().default(0) }),
  upload: multipartUpload({ parts: 3, maxSentBytes: 10_000 }),
  async prepare({ upload }) {
    const sizes: Record<string, number> = {};
    for await (const { name, body } of upload) sizes[name] = await count(body);
    return sizes;
  },
  async handle(call, sizes) {
    // @ts-expect-error: it runs in a transaction, perhaps twice
    expect(call.upload).toBeUndefined();
    handled += 1;
    return { body: { sizes } };
  },
});

const file: Route = defineRoute({
  method: 'PUT',
  path: '/v1/file',
  tag: 'Test',
  summary: 'a file',
  access: anyone,
  tracking: { untracked: 'a test' },
  responses: { 200: counted },
  upload: byteUpload(['application/gzip', 'application/x-tar'], { codings: [] }),
  prepare: async ({ upload }) => ({ file: await count(upload) }),
  handle: async (_, sizes) => ({ body: { sizes } }),
});

async function count(pieces: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const piece of pieces) bytes += piece.length;
  return bytes;
}

let api: PlatformApi;
let key: string;
let organization: string;

beforeAll(async () => {
  api = await createPlatformApi({ routes: [parts, file] });
  organization = await api.addOrganization();
  const workspace = await api.addWorkspace(organization);
  key = await api.addServiceKey(organization, 'WORKSPACE_ADMIN', workspace);
});
afterAll(() => api[Symbol.asyncDispose]());
beforeEach(() => void (handled = 0));

const TYPE = 'multipart/form-data; boundary=b0';
const multipart = (...names: readonly string[]): Buffer =>
  Buffer.from(
    `${names.map((name) => `--b0\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n123\r\n`).join('')}--b0--`,
  );

function send(raw: Buffer, fields: Readonly<Record<string, string>> = {}, options: Ask = {}): Promise<Asked> {
  return api.ask('POST', '/v1/parts', { key, raw, headers: { 'content-type': TYPE, ...fields }, ...options });
}

async function eventsOf(operation: string): Promise<number> {
  const { db } = api.database.owner;
  const rows = await db.selectFrom('audit_events').selectAll().execute();
  return rows.filter((row) => row.operation === operation && row.organization_id === organization).length;
}

describe('a multipart upload', () => {
  it('is consumed before the transaction, which has its audit event', async () => {
    const before = await eventsOf('create_listener');
    for (const [raw, fields] of [
      [multipart('post.1', 'patch.2'), {}],
      [gzipSync(multipart('post.1', 'patch.2')), { 'content-encoding': 'gzip' }],
      [zstdCompressSync(multipart('post.1', 'patch.2')), { 'content-encoding': 'zstd' }],
    ] as const) {
      const { status, body } = await send(raw, fields);
      expect([status, body]).toEqual([200, { sizes: { 'post.1': 3, 'patch.2': 3 } }]);
    }
    expect([handled, await eventsOf('create_listener')]).toEqual([3, before + 3]);
  });

  it.each<
    [name: string, raw: Buffer, fields: Readonly<Record<string, string>>, status: number, code: string]
  >([
    ['of another type', Buffer.from('{}'), { 'content-type': 'application/json' }, 415, 'content_type'],
    ['in another coding', multipart('a'), { 'content-encoding': 'br' }, 415, 'content_coding'],
    ['that is cut off', multipart('a').subarray(0, -4), {}, 400, 'malformed_multipart'],
    ['with too many parts', multipart('a', 'b', 'c', 'd'), {}, 413, 'too_large'],
    ['that is too large', Buffer.alloc(10_001), {}, 413, 'too_large'],
    ['that is not gzip', multipart('a'), { 'content-encoding': 'gzip' }, 400, 'not_decodable'],
  ])('%s is rejected, and nothing is written', async (_, raw, fields, status, code) => {
    const rejected = await send(raw, fields);
    expect([rejected.status, rejected.body.code, handled]).toEqual([status, code, 0]);
    if (code === 'content_coding') expect(rejected.headers.get('accept-encoding')).toBe('gzip, zstd');
  });

  it('is not read for a caller without permission, or with an invalid query', async () => {
    let pulled = 0;
    const raw = (): ReadableStream =>
      new ReadableStream({ pull: () => void (pulled += 1) }, { highWaterMark: 0 });
    const headers = { 'content-type': TYPE };
    expect((await api.ask('POST', '/v1/parts', { key: 'x', raw: raw(), headers })).status).toBe(401);
    expect((await api.ask('POST', '/v1/parts?from=x', { key, raw: raw(), headers })).status).toBe(422);
    expect(pulled).toBe(0);
  });
});

describe('a file', () => {
  it('is read by its type', async () => {
    const put = (type: string): Promise<Asked> =>
      api.ask('PUT', '/v1/file', { raw: Buffer.from('abc'), headers: { 'content-type': type } });
    expect((await put('application/x-tar; version=1')).body).toEqual({ sizes: { file: 3 } });
    expect((await put('application/json')).body).toEqual({
      code: 'content_type',
      detail: 'Send a body with Content-Type: application/gzip or application/x-tar',
    });
  });

  it('is in the OpenAPI document by its types', () => {
    const { paths } = toOpenApi([file], '1');
    expect(paths['/v1/file']?.['put']).toMatchObject({
      requestBody: {
        required: true,
        content: { 'application/gzip': { schema: {} }, 'application/x-tar': {} },
      },
    });
    const upload = byteUpload(['application/json'], { schema: z.object({ a: z.string() }) });
    expect(toOpenApi([{ ...file, upload }], '1').paths['/v1/file']?.['put']).toMatchObject({
      requestBody: { content: { 'application/json': { schema: { type: 'object', required: ['a'] } } } },
    });
  });
});
