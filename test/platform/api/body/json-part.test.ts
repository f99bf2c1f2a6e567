// JSON bodies of routes that are less strict than others. The strict ones are tested with all parts of a request.
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { BodyError } from '../../../../src/base/http/body-error.ts';
import { RequestError } from '../../../../src/base/http/request-body.ts';
import { type BodyRules, readJsonPart } from '../../../../src/platform/api/body/json-part.ts';
import { createApiRequest } from '../../../support/api-request.ts';

async function read(
  body: string | Buffer,
  rules: BodyRules = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const request = createApiRequest('/', { method: 'POST', body, headers });
  try {
    return await readJsonPart(request, { maxBytes: 1000, ...rules });
  } catch (error) {
    if (error instanceof BodyError || error instanceof RequestError) return error.kind;
    throw error;
  }
}

describe('a JSON body', () => {
  it('may be nested deeply, repeat names and hold U+0000 where its route allows it', async () => {
    const rules = { maxDepth: 100, mayRepeatNames: true, isStorable: false };
    const deep = `${'['.repeat(99)}${']'.repeat(99)}`;
    for (const text of [deep, '{"a":1,"a":2}', '["\\u0000\\ud800"]']) {
      expect(await read(text)).toMatchObject({ issue: { loc: ['body', ...[expect.anything()]] } });
      expect(await read(text, rules)).toEqual({ value: JSON.parse(text) });
    }
    expect(await read(`[[${deep}]]`, rules)).toMatchObject({ issue: { type: 'json_invalid' } });
  });

  it('may have a coding where its route allows it, within its limit once decoded', async () => {
    const text = '{"a":"b"}';
    const gzip = { 'content-encoding': 'gzip' };
    const zstd = { 'content-encoding': 'zstd' };
    const codings = ['gzip', 'zstd'] as const;
    expect(await read(gzipSync(text), {}, gzip)).toBe('content_coding');
    expect(await read(gzipSync(text), { codings }, gzip)).toEqual({ value: { a: 'b' } });
    expect(await read(zstdCompressSync(Buffer.from(text)), { codings }, zstd)).toEqual({ value: { a: 'b' } });
    expect(await read(text, { codings })).toEqual({ value: { a: 'b' } });
    expect(await read(gzipSync(JSON.stringify('a'.repeat(1000))), { codings }, gzip)).toBe('too_large');
    expect(await read(gzipSync(JSON.stringify('a'.repeat(1000))), { codings, maxBytes: 1002 }, gzip)).toEqual(
      {
        value: 'a'.repeat(1000),
      },
    );
    expect(await read(text, { codings }, gzip)).toBe('not_decodable');
    expect(await read('', { codings }, gzip)).toEqual({ value: undefined });
  });

  it('is UTF-8', async () => {
    const typed = (type: string): Promise<unknown> => read('1', {}, { 'content-type': type });
    for (const type of [
      'application/json; charset=UTF-8',
      'application/json;charset="utf-8"',
      'application/json; charset=utf8',
    ])
      expect(await typed(type)).toEqual({ value: 1 });
    for (const type of [
      'application/json; charset=iso-8859-1',
      'application/json; charset=utf-8; charset=utf-16',
    ])
      expect(await typed(type)).toBe('content_type');
  });
});
