// Header lists as heads and back, by themselves: what a list may say, and what of it leaves.
import { sensitiveHeaders } from 'node:http2';
import { describe, expect, it } from 'vitest';
import { isHeadError } from '../../../src/http1/head-error.ts';
import { compileNames } from '../../../src/http1/field-name.ts';
import { parseAuthority } from '../../../src/policy/authority/authority.ts';
import {
  byName,
  isNoTrailer,
  outgoingFields,
  outgoingRequestList,
  parseRequestList,
  parseResponseList,
  parseTrailerList,
} from '../../../src/proxy/h2/header-block.ts';
import { compileMask } from '../../../src/proxy/mask/mask.ts';
import { isRefusal } from '../../../src/proxy/refusal.ts';
import { planRequest } from '../../../src/proxy/gate/request-plan.ts';

const limits = { maxHeadBytes: 16_384, maxFields: 100, maxTargetBytes: 8_192 };
const pseudo = {
  ':method': 'GET',
  ':scheme': 'https',
  ':authority': 'api.test',
  ':path': '/v1?q=1',
};

function list(
  fields: readonly string[],
  others: Readonly<Record<string, string | undefined>> = {},
): string[] {
  const entries = Object.entries({ ...pseudo, ...others }).filter(([, value]) => value !== undefined);
  return [...(entries.flat() as string[]), ...fields];
}

const injection = {
  names: ['Authorization', 'X-Api-Key'],
  isReplaced: compileNames(['authorization', 'x-api-key']),
  lines: Buffer.from(''),
  list: ['authorization', 'Bearer secret', 'x-api-key', 'k'],
  listed: ['authorization', 'x-api-key'],
  isBinding: false,
};

function sent(
  fields: readonly string[],
  others = {},
  injected: typeof injection | 'nothing' = injection,
): string[] {
  const block = parseRequestList(list(fields, others), limits);
  if (isRefusal(block)) throw new Error(block.cause);
  const tunnel = parseAuthority('api.test:443');
  const plan = typeof tunnel === 'string' ? undefined : planRequest(block.head, tunnel, 'https');
  if (!plan || isRefusal(plan)) throw new Error('no plan');
  return [...outgoingRequestList(plan, block.fields, injected === 'nothing' ? undefined : injected)];
}

describe('a request list', () => {
  const refused: readonly [string, string[]][] = [
    ['method_refused', list([], { ':method': 'CONNECT', ':path': undefined, ':scheme': undefined })],
    ['method_refused', list([], { ':method': 'CONNECT', ':protocol': 'websocket' })],
    ['malformed_request', list([], { ':method': undefined })],
    ['malformed_request', list([], { ':path': undefined })],
    ['malformed_request', list([], { ':path': '' })],
    ['malformed_request', list([], { ':protocol': 'websocket' })],
    ['malformed_request', list([], { ':status': '200' })],
    ['target_invalid', list([], { ':scheme': 'http' })],
    ['target_invalid', list([], { ':scheme': 'HTTPS' })],
    ['target_invalid', list([], { ':scheme': undefined })],
    ['target_invalid', list([], { ':path': 'https://api.test/' })],
    ['target_invalid', list([], { ':path': 'v1' })],
    ['malformed_request', list([], { ':path': '/a b' })],
    ['malformed_request', list([], { ':path': '/ HTTP/1.1\r\nX: y' })],
    ['malformed_request', list([], { ':method': 'GET / HTTP/1.1\r\nX: y\r\n\r\nGET' })],
    ['malformed_request', list(['x', 'a\r\ny: b'])],
    ['malformed_request', list(['x', 'a\r\n\r\nGET / HTTP/1.1'])],
    ['malformed_request', list(['x: y', 'a'])],
    ['malformed_request', list(['x y', 'a'])],
    ['malformed_request', list(['x', ' a'])],
    ['malformed_request', list(['x', 'a\t'])],
    ['malformed_request', list(['content_length', '1'])],
    ['host_invalid', list([], { ':authority': undefined })],
    ['host_invalid', list(['host', 'api.test', 'host', 'api.test'])],
    ['host_mismatch', list(['host', 'other.test'])],
    ['head_too_large', list(['x', 'a'.repeat(16_384)])],
    ['head_too_large', list(Array.from({ length: 101 }, () => ['x', 'a']).flat())],
    ['uri_too_long', list([], { ':path': `/${'a'.repeat(8_192)}` })],
  ];

  it.each(refused)('%s: %j', (code, fields) => {
    expect(parseRequestList(fields, limits)).toMatchObject({ refused: code });
  });

  it('says its authority by either name, and by both if they agree', () => {
    for (const [fields, others] of [
      [[], {}],
      [['host', 'api.test'], { ':authority': undefined }],
      [['host', 'API.test:443'], {}],
    ] as const) {
      const out = sent([...fields], others, 'nothing');
      expect(out.slice(4, 6)).toEqual([':authority', 'api.test']);
      expect(out.filter((_, i) => i % 2 === 0)).not.toContain('host');
    }
  });
});

describe('what leaves of a request list', () => {
  it('is every field as it came, in its order, then the injected ones, which are never indexed', () => {
    const out = sent([
      'accept',
      '*/*',
      'x-a',
      '1',
      'cookie',
      'a=1',
      'x-a',
      '2',
      'cookie',
      'b=2',
      'empty',
      '',
    ]);
    expect(out).toEqual([
      ...[':method', 'GET', ':scheme', 'https', ':authority', 'api.test', ':path', '/v1?q=1'],
      ...['accept', '*/*', 'x-a', '1', 'cookie', 'a=1', 'x-a', '2', 'cookie', 'b=2', 'empty', ''],
      ...injection.list,
    ]);
    expect((sentList() as { [sensitiveHeaders]?: unknown })[sensitiveHeaders]).toEqual([
      'authorization',
      'x-api-key',
    ]);
  });

  it('lacks what the agent sent under an injected name, however it is spelled', () => {
    const out = sent([
      'authorization',
      'mine',
      'x_api_key',
      'mine',
      'x-api-key',
      'mine',
      'x-original-url',
      '/admin',
    ]);
    expect(out.slice(8)).toEqual(injection.list);
  });

  it('lacks what is one hop’s own, but for `te: trailers`', () => {
    const fields = ['te', 'trailers', 'proxy-authorization', 'Basic x', 'proxy-foo', 'x', 'trailer', 'x'];
    expect(sent(fields, {}, 'nothing').slice(8)).toEqual(['te', 'trailers']);
    expect(sent(['te', 'gzip'], {}, 'nothing').slice(8)).toEqual([]);
  });

  function sentList(): unknown {
    const block = parseRequestList(list([]), limits);
    const tunnel = parseAuthority('api.test:443');
    if (isRefusal(block) || typeof tunnel === 'string') throw new Error('no head');
    const plan = planRequest(block.head, tunnel, 'https');
    if (isRefusal(plan)) throw new Error('no plan');
    return outgoingRequestList(plan, block.fields, injection);
  }
});

describe('a response’s list', () => {
  it('keeps its fields in their order, without those of one hop and Alt-Svc', () => {
    const head = parseResponseList(
      [':status', '200', 'set-cookie', 'a', 'alt-svc', 'h3=":443"', 'set-cookie', 'b', 'proxy-status', 'x'],
      limits,
    );
    if (isHeadError(head)) throw new Error(head.code);
    expect(head.head.status).toBe(200);
    expect(outgoingFields(head, undefined)).toEqual(['set-cookie', 'a', 'set-cookie', 'b']);
  });

  it('is masked', () => {
    const head = parseResponseList([':status', '302', 'location', '/?k=sesame-open-now', 'x', 'y'], limits);
    if (isHeadError(head)) throw new Error(head.code);
    expect(outgoingFields(head, compileMask(['sesame-open-now']))).toEqual([
      'location',
      '/?k=***************',
      'x',
      'y',
    ]);
  });

  it.each([
    [[':status', '600']],
    [[':status', '20']],
    [['x', 'y']],
    [[':status', '200', 'x', 'a\r\nset-cookie: b']],
    [[':status', '200', 'a b', 'c']],
    [[':status', '200', 'x', 'a'.repeat(20_000)]],
  ])('%j is none', (fields) => {
    expect(isHeadError(parseResponseList(fields, limits))).toBe(true);
  });
});

describe('trailers', () => {
  it('are fields without those that frame or route', () => {
    const head = parseTrailerList(
      ['grpc-status', '0', 'content-length', '3', 'host', 'x', 'alt-svc', 'x', 'x', 'y'],
      limits,
    );
    if (isHeadError(head)) throw new Error(head.code);
    const fields = outgoingFields(head, undefined, isNoTrailer);
    expect(fields).toEqual(['grpc-status', '0', 'x', 'y']);
  });

  it('are given by name, with all their values', () => {
    const fields = byName(['a', '1', 'b', '2', 'a', '3', '__proto__', '4']);
    expect(Object.entries(fields)).toEqual([
      ['a', ['1', '3']],
      ['b', ['2']],
      ['__proto__', ['4']],
    ]);
  });
});
