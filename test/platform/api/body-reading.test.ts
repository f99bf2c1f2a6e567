import { describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../src/base/domain-error.ts';
import { readBody } from '../../../src/platform/api/body-reading.ts';
import { Unreadable } from '../../../src/platform/api/problem.ts';

type Body = string | Uint8Array | ReadableStream;

const MAX = 64;

function request(body: Body | undefined, type = 'application/json'): Request {
  const headers = type === '' ? {} : { 'content-type': type };
  return new Request('http://platform.test/', {
    method: 'POST',
    headers,
    ...(body === undefined ? {} : { body, duplex: 'half' }),
  } as RequestInit);
}

async function failure(asked: Request): Promise<unknown> {
  try {
    return { read: await readBody(asked, MAX) };
  } catch (error) {
    if (error instanceof InvalidInput) return error.issues.map(({ loc, type }) => [loc, type]);
    if (error instanceof Unreadable) return error.status;
    throw error;
  }
}

/** Pieces without a length that was announced. */
function streamed(pieces: readonly string[]): ReadableStream {
  const rest = [...pieces];
  return new ReadableStream({
    pull(controller) {
      const piece = rest.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(new TextEncoder().encode(piece));
    },
  });
}

describe('a body', () => {
  it('that is absent or empty is none', async () => {
    expect(await readBody(request(undefined), MAX)).toBeUndefined();
    expect(await readBody(request(''), MAX)).toBeUndefined();
    expect(await readBody(request(undefined, 'text/plain'), MAX)).toBeUndefined();
  });

  it.each(['application/json', 'Application/JSON; charset=utf-8', 'application/merge-patch+json', ''])(
    'of type %j is read as JSON',
    async (type) => {
      expect(await readBody(request(new TextEncoder().encode('{"a":["ä"]}'), type), MAX)).toEqual({
        a: ['ä'],
      });
    },
  );

  const rows: readonly (readonly [string, Body, unknown])[] = [
    ['no JSON', '{"a":}', [[['body'], 'json_invalid']]],
    ['two documents', '{} {}', [[['body', 3], 'json_invalid']]],
    ['a name twice', '{"a":1,"a":2}', [[['body', 7], 'json_invalid']]],
    ['a name twice by an escape', '{"a":1,"\\u0061":2}', [[['body', 7], 'json_invalid']]],
    ['deeper than any document is', '['.repeat(33) + ']'.repeat(33), 413],
    ['no UTF-8', new Uint8Array([0x22, 0xff, 0x22]), [[['body'], 'json_invalid']]],
    [
      'U+0000, which the database cannot keep',
      '{"a":["x","\\u0000"]}',
      [[['body', 'a', 1], 'string_unicode']],
    ],
    ['U+0000 in a name', '{"a":{"\\u0000":1}}', [[['body', 'a', '…'], 'string_unicode']]],
    ['half a character', '{"a":"\\ud800"}', [[['body', 'a'], 'string_unicode']]],
    ['a byte more than the limit', JSON.stringify('a'.repeat(MAX - 1)), 413],
  ];
  it.each(rows)('of %s is refused by its place', async (_, body, expected) => {
    expect(await failure(request(body))).toEqual(expected);
  });

  it('nested too deeply is refused', async () => {
    const body = `${'['.repeat(33)}${']'.repeat(33)}`;
    await expect(readBody(request(body), 1000)).rejects.toMatchObject({
      issues: [{ loc: ['body', 32], type: 'json_invalid' }],
    });
  });

  it('is not read beyond its limit, also when no length was announced', async () => {
    const pieces = Array.from({ length: 1000 }, () => ' '.repeat(32));
    const body = streamed(pieces);
    expect(await failure(request(body))).toBe(413);
  });

  it('in pieces that split a character is read', async () => {
    const [first, second] = [new Uint8Array([0x22, 0xc3]), new Uint8Array([0xa4, 0x22])];
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(first);
        controller.enqueue(second);
        controller.close();
      },
    });
    expect(await readBody(request(body), MAX)).toBe('ä');
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'multipart/form-data'])(
    'of type %j is refused as such',
    async (type) => {
      expect(await failure(request(new TextEncoder().encode('{}'), type))).toBe(415);
    },
  );
});
