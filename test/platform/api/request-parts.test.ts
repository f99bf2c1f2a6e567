import { describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../src/base/domain-error.ts';
import { RequestError } from '../../../src/base/http/request-body.ts';
import { z } from '../../../src/base/schema.ts';
import { readParts } from '../../../src/platform/api/request-parts.ts';
import type { RequestParts } from '../../../src/platform/api/route.ts';
import { type ApiRequestOptions, createApiRequest } from '../../support/api-request.ts';

const MAX = 4 * 1024 * 1024;
const route = {
  params: z.strictObject({ id: z.uuid() }),
  query: z.strictObject({ limit: z.int().default(10) }),
  body: z.strictObject({ name: z.string() }),
};
const JSON_TYPE = { 'content-type': 'application/json' };

function readAs(
  parts: RequestParts,
  options: ApiRequestOptions,
  { path = '/', params = {}, max = MAX } = {},
): Promise<{ readonly body: unknown }> {
  const request = createApiRequest(path, { method: 'POST', ...options });
  return readParts(parts, request, { params, search: new URL(`http://localhost${path}`).search }, max);
}

function read(
  body: string,
  query = '',
  params = { id: '00000000-0000-4000-8000-000000000000' },
): Promise<unknown> {
  return readAs(route, { body, headers: JSON_TYPE }, { path: `/${query}`, params });
}

describe('the parts of a request', () => {
  it('are read by the schemas of the route', async () => {
    expect(await read('{"name":"a"}', '?limit=5')).toEqual({
      params: { id: '00000000-0000-4000-8000-000000000000' },
      query: { limit: 5 },
      body: { name: 'a' },
    });
  });

  it('are rejected with the issues of all of them', async () => {
    const rejected = await read('{"name":1}', '?limit=x&more=1', { id: '\0' }).catch(
      (error: unknown) => error,
    );
    expect((rejected as InvalidInput).issues.map(({ loc }) => loc)).toEqual([
      ['query', 'more'],
      ['path', 'id'],
      ['query', 'limit'],
      ['body', 'name'],
    ]);
  });

  it('are rejected however many issues fit into a body', async () => {
    const names = Array.from({ length: 200_000 }, (_, at) => `"${at}":1`);
    const rejected = await read(`{${names.slice(0, 30_000).join(',')}}`).catch((error: unknown) => error);
    expect((rejected as InvalidInput).issues).toHaveLength(30_001);
    // More are not looked at one by one.
    const sooner = await read(`{${names.join(',')}}`).catch((error: unknown) => error);
    expect((sooner as InvalidInput).issues).toMatchObject([{ type: 'json_invalid' }]);
  });
});

const SMALL = 64;

async function readBody(
  body: ApiRequestOptions['body'],
  type = 'application/json',
  max = SMALL,
): Promise<unknown> {
  const headers: Readonly<Record<string, string>> = type === '' ? {} : { 'content-type': type };
  try {
    return { read: (await readAs({ body: z.unknown() }, { body, headers }, { max })).body };
  } catch (error) {
    if (error instanceof InvalidInput) return error.issues.map(({ loc, type }) => [loc, type]);
    if (error instanceof RequestError) return error.kind;
    throw error;
  }
}

function streamed(pieces: readonly (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  const rest = pieces.map((piece) => Uint8Array.from(Buffer.from(piece)));
  return new ReadableStream({
    pull(controller) {
      const piece = rest.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
}

describe('a body', () => {
  it('that is absent or empty is none', async () => {
    for (const [body, type] of [[undefined], [''], [undefined, 'text/plain']] as const)
      expect(await readBody(body, type)).toEqual({ read: undefined });
  });

  it.each(['application/json', 'Application/JSON; charset=utf-8', 'application/merge-patch+json', ''])(
    'of type %j is read as JSON',
    async (type) => {
      expect(await readBody('{"a":["ä"]}', type)).toEqual({ read: { a: ['ä'] } });
    },
  );

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'multipart/form-data'])(
    'of type %j is rejected by its type',
    async (type) => {
      expect(await readBody('{}', type)).toBe('content_type');
    },
  );

  const rows: readonly (readonly [string, ApiRequestOptions['body'], unknown])[] = [
    ['no JSON', '{"a":}', [[['body'], 'json_invalid']]],
    ['two documents', '{} {}', [[['body', 3], 'json_invalid']]],
    ['a repeated name', '{"a":1,"a":2}', [[['body', 7], 'json_invalid']]],
    ['a name repeated by an escape', '{"a":1,"\\u0061":2}', [[['body', 7], 'json_invalid']]],
    ['more bytes than the limit', '['.repeat(33) + ']'.repeat(33), 'too_large'],
    ['no UTF-8', new Uint8Array([0x22, 0xff, 0x22]), [[['body'], 'json_invalid']]],
    [
      'U+0000, which the database cannot store',
      '{"a":["x","\\u0000"]}',
      [[['body', 'a', 1], 'string_unicode']],
    ],
    ['U+0000 in a name', '{"a":{"\\u0000":1}}', [[['body', 'a', '…'], 'string_unicode']]],
    ['a lone surrogate', '{"a":"\\ud800"}', [[['body', 'a'], 'string_unicode']]],
    ['a byte more than the limit', JSON.stringify('a'.repeat(SMALL - 1)), 'too_large'],
    ['a byte order mark and JSON', '\ufeff{}', { read: {} }],
  ];
  it.each(rows)('of %s is read or rejected with its location', async (_, body, expected) => {
    expect(await readBody(body)).toEqual(expected);
  });

  it('nested too deeply is rejected', async () => {
    const body = `${'['.repeat(33)}${']'.repeat(33)}`;
    expect(await readBody(body, 'application/json', 1000)).toEqual([[['body', 32], 'json_invalid']]);
  });

  it('is not read beyond its limit, also when no length was announced', async () => {
    const pieces = Array.from({ length: 1000 }, () => ' '.repeat(32));
    expect(await readBody(streamed(pieces))).toBe('too_large');
  });

  it('in pieces that split a character is read', async () => {
    const pieces = [new Uint8Array([0x22, 0xc3]), new Uint8Array([0xa4, 0x22])];
    expect(await readBody(streamed(pieces))).toEqual({ read: 'ä' });
  });
});
