// I3 over HTTP/2: the origin gets the `:method`, `:scheme`, `:authority` and `:path` that the policy checked, and no field
// that contradicts them. The rule covers only /v1/, so that a target which changes after the check is noticed.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { H2Request } from '../support/h2-exchange.ts';
import { refusalOf } from '../support/h2-wire-client.ts';
import type { SentField } from '../support/hpack.ts';
import { runs } from '../support/run-size.ts';
import { ambiguousTargets } from './ambiguous-targets.ts';
import { INJECTED, bearerRule } from './credential-scene.ts';
import { arrival, bytesAt, createH2Scene } from './h2-scene.ts';

const rules = [bearerRule('api.test', { match_paths: ['/v1/*', '/repos/*/keys'] }), bearerRule('any.test')];
const names = ['api.test', 'any.test'];

function isInjected(request: H2Request | undefined): boolean | undefined {
  return request?.values('authorization').includes(INJECTED);
}

describe('I3 judged is sent: unusual but valid, over HTTP/2', () => {
  const targets: readonly (readonly [target: string, injected: boolean])[] = [
    ['/v1/', true],
    ['/v1/projects/group%2Fproject', true],
    ['/v1//x', true],
    ['//v2/x', false],
    ['/v1/a;x=1;y=2/b;z', true],
    ['/v1/?a=/../../v2', true],
    ['/v1/x?', true],
    ['/v1/x?a=%zz&b=%00&c=../..', true],
    ['/v1/{}|^`', true],
    ["/v1/[a]!$&'()*+,=:@-._~", true],
    ['/v1/%7Euser', true],
    ['/v1/%E2%82%AC', true],
    ['/v1/a..b/..c', true],
    ['/v1/http://other.test/', true],
    ['/v1', false],
    ['/V1/x', false],
    ['/v2/x?a=/v1/', false],
    ['/v2/;/v1/', false],
    ['/?/v1/x', false],
    ['/v10/x', false],
  ];
  it.each(targets)(
    'I3 judged is sent: :path %s is sent byte for byte, injected: %s',
    async (target, injected) => {
      await using scene = await createH2Scene({ rules, names });
      const { response, request } = await arrival(scene, [], { ':path': target });
      expect([response.status, request?.path, isInjected(request)]).toEqual([200, target, injected]);
    },
  );

  const unread = ['/a/../b', '/a/%2e%2e/b', '/./', '/a\\b', '/%00', '/%', '/%C0%AF', '/%252e%252e/'];
  it.each(unread)(
    'I3 judged is sent: :path %s is sent unchanged where no rule matches on paths',
    async (target) => {
      await using scene = await createH2Scene({ rules, names });
      const { response, request } = await arrival(scene, [], { ':path': target }, 'any.test');
      expect([response.status, request?.path, isInjected(request)]).toEqual([200, target, true]);
    },
  );

  it.each(['GET', 'get', 'Get', 'PROPFIND', 'M-SEARCH', "!#$%&'*+-.^_`|~", 'DELETE', 'QUERY'])(
    'I3 judged is sent: the :method %s is sent unchanged',
    async (method) => {
      await using scene = await createH2Scene({ rules, names });
      const { response, request } = await arrival(scene, [], { ':method': method, ':path': '/v1/x' });
      expect([response.status, request?.method]).toEqual([200, method]);
    },
  );

  it('I3 judged is sent: an equivalent :authority is sent byte for byte, without a host field', async () => {
    await using scene = await createH2Scene({ rules, names });
    const { port } = scene.origin;
    const spellings = [`api.test:${port}`, `API.Test:${port}`, `api.test.:${port}`];
    for (const authority of spellings) {
      for (const [pseudo, host] of [
        [authority, undefined],
        [authority, authority],
        [authority, `Api.tesT:${port}`],
        [undefined, authority],
      ]) {
        const extra: SentField[] = host === undefined ? [] : [['host', host]];
        const { request } = await arrival(scene, extra, { ':authority': pseudo, ':path': '/v1/x' });
        expect([request?.authority, request?.values('host')]).toEqual([authority, []]);
        expect(isInjected(request)).toBe(true);
      }
    }
  });

  it('I3 judged is sent: OPTIONS * gets no credential', async () => {
    await using scene = await createH2Scene({ rules, names });
    const pseudo = { ':method': 'OPTIONS', ':path': '*' };
    const { request } = await arrival(scene, [], pseudo, 'any.test');
    expect([request?.method, request?.path, isInjected(request)]).toEqual(['OPTIONS', '*', false]);
  });

  it('I3 judged is sent: the pseudo-fields come first, and all fields keep their order and bytes', async () => {
    await using scene = await createH2Scene({ rules, names });
    const fields: readonly (readonly [string, string])[] = [
      ['x-b', 'two'],
      ['x-a', 'one'],
      ['x-b', 'two'],
      ['cookie', 'a=1; b="2"'],
      ['x-obs', '\xe9\xff'],
      ['x-empty', ''],
      ['x_under', 'score'],
    ];
    const { request } = await arrival(scene, fields, { ':path': '/v1/x' });
    expect(request?.headers).toEqual([
      [':method', 'GET'],
      [':scheme', 'https'],
      [':authority', scene.at()],
      [':path', '/v1/x'],
      ...fields,
      ['authorization', INJECTED],
    ]);
  });

  const claims = ['x-original-url', 'x-rewrite-url', 'x-forwarded-uri', 'x_original_url', 'x_rewrite-url'];
  it.each(claims)('I3 judged is sent: %s is not relayed beside a credential on a stream', async (name) => {
    await using scene = await createH2Scene({ rules, names });
    const { request } = await arrival(scene, [[name, '/v2/admin']], { ':path': '/v1/x' });
    expect(request?.headers.slice(4).map(([key]) => key)).toEqual(['authorization']);
  });
});

describe('I3 judged is sent: ambiguous targets over HTTP/2', () => {
  it.each(ambiguousTargets)('I3 judged is sent: :path %s is refused', async (target) => {
    await using scene = await createH2Scene({ rules, names });
    const { response } = await arrival(scene, [], { ':path': target });
    expect([response.status, refusalOf(response)]).toEqual([400, 'ambiguous_path']);
    expect(bytesAt(scene)).toBe('');
  });

  type Row = readonly [
    why: string,
    pseudo: Readonly<Record<string, string | undefined>>,
    extra?: SentField[],
  ];
  const other = 'any.test';
  const rows: readonly Row[] = [
    ['a fragment', { ':path': '/v1/x#/../v2' }],
    ['brackets', { ':path': '/v1/<x>' }],
    ['a space', { ':path': '/v1/x /v2' }],
    ['DEL', { ':path': '/v1/\x7f' }],
    ['a byte above ASCII', { ':path': '/v1/\xc0\xae' }],
    ['no slash', { ':path': 'v1/x' }],
    ['an asterisk for GET', { ':path': '*' }],
    ['absolute-form', { ':path': 'https://@/v1/x' }],
    ['a path that is too long', { ':path': `/v1/${'x'.repeat(9_000)}` }],
    ['a method with a space', { ':method': 'GET /v2' }],
    ['a method of forty letters', { ':method': 'M'.repeat(40) }],
    ['another scheme', { ':scheme': 'http' }],
    ['an unknown scheme', { ':scheme': 'ftp' }],
    ['a different host', {}, [['host', other]]],
    ['a host with another port', {}, [['host', 'api.test:1']]],
    [
      'two hosts',
      { ':authority': undefined },
      [
        ['host', '@'],
        ['host', other],
      ],
    ],
    ['another :authority', { ':authority': `${other}:PORT` }],
    ['another :authority and the right host', { ':authority': `${other}:PORT` }, [['host', '@']]],
    ['no port', { ':authority': 'api.test' }],
    ['a user name', { ':authority': 'x@@' }],
    ['two :path fields', {}, [[':path', '/v2']]],
    [
      'a pseudo-field after a field',
      { ':path': undefined },
      [
        ['x-a', '1'],
        [':path', '/v1/x'],
      ],
    ],
    ['an unknown pseudo-field', { ':x': '1' }],
    ['neither authority nor host', { ':authority': undefined }],
  ];
  const cases = rows.map(([why, pseudo, extra = []]) => [why, pseudo, extra] as const);
  it.each(cases)('I3 judged is sent: %s is refused', async (_, pseudo, extra) => {
    await using scene = await createH2Scene({ rules, names });
    const placed = (text: string): string =>
      text
        .replace(/@$/, scene.at())
        .replace('//@', `//${scene.at()}`)
        .replace('PORT', String(scene.origin.port));
    const sent = { ':path': '/v1/x', ...pseudo };
    const named = Object.entries(sent).map(([key, text]) => [key, text && placed(text)]);
    const fields = extra.map(
      (field): SentField => (Buffer.isBuffer(field) ? field : [field[0], placed(field[1])]),
    );
    const { response } = await arrival(scene, fields, Object.fromEntries(named));
    // Refused by node:http2 or by the proxy.
    if (response.status === 0) expect(response.reset).toBe('PROTOCOL_ERROR');
    else expect([400, 405, 414, 421]).toContain(response.status);
    expect(bytesAt(scene)).toBe('');
  });
});

describe('I3 judged is sent: any target, over HTTP/2', () => {
  it('I3 judged is sent: is sent unchanged or not at all, with any other streams', async () => {
    await using scene = await createH2Scene({ rules, names });
    await using client = await scene.client();
    const piece = fc.constantFrom(
      ...['/', '/', '.', '..', 'v1', 'v2', 'x', '%2f', '%5c', '\\', '%2e', '%25', '%252e', '%32', ';', '..;'],
      ...['?', '/v1/', '%76', '%00', '%', '%C3%A9', '%C0', '{', '~', '//', '*', '='],
    );
    const target = fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join('')}`);
    const scoped = target.map((text) => `/v1${text}`);
    const several = fc.uniqueArray(fc.oneof(target, scoped, scoped), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(several, async (texts) => {
        const before = scene.origin.streams.length;
        const ask = async (text: string): Promise<readonly [string, number]> => [
          text,
          (await client.request(client.fields(text))).status,
        ];
        const asked = await Promise.all(texts.map(ask));
        for (const [, status] of asked) expect([200, 400]).toContain(status);
        const arrived = scene.origin.streams.slice(before);
        const passed = asked.flatMap(([text, status]) => (status === 200 ? [text] : []));
        expect(arrived.map(({ path }) => path).toSorted()).toEqual(passed.toSorted());
        // Other readings of a path are tested with the policy, which is the same for both versions.
        for (const request of arrived) if (isInjected(request)) expect(request.path).toMatch(/^\/v1\//);
      }),
      { numRuns: runs(150, 30) },
    );
  });
});
