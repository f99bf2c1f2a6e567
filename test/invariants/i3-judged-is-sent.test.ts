// I3: the origin gets the method, target and Host that the policy checked, byte for byte; an ambiguous target is refused.
// The rule covers only /v1/, so that a target which changes after the check is noticed.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headerValues } from '../support/message-reader.ts';
import type { OriginRequest } from '../support/recording-origin.ts';
import { runs } from '../support/run-size.ts';
import { ambiguousTargets } from './ambiguous-targets.ts';
import { INJECTED, type Scene, bearerRule, createScene, head } from './credential-scene.ts';

const rules = [bearerRule('api.test', { match_paths: ['/v1/*', '/repos/*/keys'] }), bearerRule('any.test')];
const names = ['api.test', 'any.test'];

type Sent = { readonly status: number; readonly error: unknown; readonly request: OriginRequest | undefined };

/** Sends one request through a tunnel of its own; returns the response and the request that arrived at the origin. */
async function send(
  scene: Scene,
  startLine: string,
  options: { host?: string; name?: string } = {},
): Promise<Sent> {
  const { name = 'api.test', host = scene.at(name) } = options;
  const before = scene.origin.requests.length;
  await using client = await scene.tunnel(name);
  await client.send(head(startLine, host));
  const { head: response } = await client.readResponse();
  const error = headerValues(response, 'x-sallyport-error')[0];
  return { status: response.status, error, request: scene.origin.requests[before] };
}

function isInjected(request: OriginRequest): boolean {
  return headerValues(request, 'authorization').includes(INJECTED);
}

describe('I3 judged is sent: unusual but valid', () => {
  const targets: readonly (readonly [target: string, injected: boolean])[] = [
    ['/v1/', true],
    ['/v1/projects/group%2Fproject', true],
    ['/v1/group%2fproject/repository/files/a%2Eb', true],
    ['/v1//x', true],
    ['//v2/x', false],
    ['/v1/a;x=1', true],
    ['/v1/a;x=1;y=2/b;z', true],
    ['/v1/?a=/../../v2', true],
    ['/v1/x?', true],
    ['/v1/x??a=b?c', true],
    ['/v1/x?a=%zz&b=%00&c=../..', true],
    ['/v1/{}|^`', true],
    ["/v1/[a]!$&'()*+,=:@-._~", true],
    ['/v1/%7Euser', true],
    ['/v1/%E2%82%AC', true],
    [encodeURI('/v1/見積書８％10月？.pdf'), true],
    [encodeURI('/v1/\uff76\uff9e／か\u3099'), true],
    ['/v1/a%20b%2Bc', true],
    ['/v1/...', true],
    ['/v1/.hidden', true],
    ['/v1/a..b/..c', true],
    ['/v1/http://other.test/', true],
    ['/v1', false],
    ['/V1/x', false],
    ['/v2/x?a=/v1/', false],
    ['/v2/;/v1/', false],
    ['/', false],
    ['/?/v1/x', false],
    ['/v10/x', false],
  ];
  it.each(targets)('I3 judged is sent: %s is sent byte for byte, injected: %s', async (target, injected) => {
    await using scene = await createScene({ rules, names });
    const { status, request } = await send(scene, `GET ${target}`);
    expect([status, request?.target]).toEqual([200, target]);
    expect(request && isInjected(request)).toBe(injected);
  });

  const unread = [
    '/a/../b',
    '/a/%2e%2e/b',
    '/./',
    '/a\\b',
    '/%00',
    '/%',
    '/%C0%AF',
    '/a//../b',
    '/%252e%252e/',
  ];
  it.each(unread)(
    'I3 judged is sent: %s is sent unchanged where no rule matches on paths',
    async (target) => {
      await using scene = await createScene({ rules, names });
      const { status, request } = await send(scene, `GET ${target}`, { name: 'any.test' });
      expect([status, request?.target, request && isInjected(request)]).toEqual([200, target, true]);
    },
  );

  it.each(['GET', 'get', 'Get', 'PROPFIND', 'M-SEARCH', "!#$%&'*+-.^_`|~", 'POST', 'DELETE', 'QUERY'])(
    'I3 judged is sent: the method %s is sent unchanged',
    async (method) => {
      await using scene = await createScene({ rules, names });
      const { status, request } = await send(scene, `${method} /v1/x`);
      expect([status, request?.method]).toEqual([200, method]);
    },
  );

  it('I3 judged is sent: an equivalent Host is sent byte for byte', async () => {
    await using scene = await createScene({ rules, names });
    const { port } = scene.origin;
    for (const host of [`api.test:${port}`, `API.Test:${port}`, `api.test.:${port}`, `Api.tesT.:${port}`]) {
      const { request } = await send(scene, 'GET /v1/x', { host });
      expect(request && headerValues(request, 'host')).toEqual([host]);
    }
  });

  it('I3 judged is sent: absolute-form is sent as the origin-form that was checked', async () => {
    await using scene = await createScene({ rules, names });
    const rows: readonly (readonly [suffix: string, sent: string, injected: boolean])[] = [
      ['/v1/x?y=/v2/', '/v1/x?y=/v2/', true],
      ['', '/', false],
      ['?a=/v1/', '/?a=/v1/', false],
      ['//v2//x', '//v2//x', false],
      ['/v2/http://api.test/v1/', '/v2/http://api.test/v1/', false],
    ];
    for (const [suffix, sent, injected] of rows) {
      const { request } = await send(scene, `GET https://API.test:${scene.origin.port}${suffix}`);
      expect([request?.target, request && isInjected(request)]).toEqual([sent, injected]);
    }
  });

  it('I3 judged is sent: OPTIONS * gets no credential', async () => {
    await using scene = await createScene({ rules, names });
    const { request } = await send(scene, 'OPTIONS *', { name: 'any.test' });
    expect([request?.target, request && isInjected(request)]).toEqual(['*', false]);
  });

  it('I3 judged is sent: all other fields keep their order, case and bytes', async () => {
    await using scene = await createScene({ rules, names });
    await using client = await scene.tunnel();
    const fields = [
      'x-b:  two \t',
      'X-A: one',
      'x-b:two',
      'Cookie: a=1; b="2"',
      'X-Obs: \xe9\xff',
      'X-Empty:',
    ];
    await client.send(`GET /v1/x HTTP/1.1\r\n${fields.join('\r\n')}\r\nhOsT: ${scene.at()}\r\n\r\n`);
    await client.readResponse();
    expect(scene.origin.requests[0]?.head).toBe(
      `GET /v1/x HTTP/1.1\r\n${fields.join('\r\n')}\r\nhOsT: ${scene.at()}\r\nAuthorization: ${INJECTED}\r\n\r\n`,
    );
  });

  const claims = ['X-Original-URL', 'X-Rewrite-URL', 'X-Forwarded-Uri', 'x_original_url', 'X_REWRITE-URL'];
  it.each(claims)('I3 judged is sent: %s is not relayed beside a credential', async (name) => {
    await using scene = await createScene({ rules, names });
    await using client = await scene.tunnel();
    await client.send(head('GET /v1/x', scene.at(), [`${name}: /v2/admin`]));
    await client.readResponse();
    expect(scene.origin.requests[0]?.headers.map(([key]) => key)).toEqual(['Host', 'Authorization']);
  });
});

describe('I3 judged is sent: ambiguous targets', () => {
  it.each(ambiguousTargets)('I3 judged is sent: %s is refused', async (target) => {
    await using scene = await createScene({ rules, names });
    const { status, error, request } = await send(scene, `GET ${target}`);
    expect([status, error, request]).toEqual([400, 'ambiguous_path', undefined]);
    expect(scene.origin.transcripts.join('')).toBe('');
  });

  const malformed: readonly (readonly [startLine: string, status: number])[] = [
    ['GET /v1/x#/../v2', 400],
    ['GET /v1/<x>', 400],
    ['GET /v1/"x"', 400],
    ['GET /v1/\x7f', 400],
    ['GET /v1/\xc0\xae', 400],
    ['GET /v1/x /v2', 400],
    ['GET  /v1/x', 400],
    ['GET\t/v1/x', 400],
    ['GET v1/x', 400],
    ['GET *', 400],
    ['OPTIONS **', 400],
    ['GET api.test', 400],
    ['GET ftp://api.test/v1/x', 400],
    ['GET file:///v1/x', 400],
    [`GET /v1/${'x'.repeat(9_000)}`, 414],
    ['G@T /v1/x', 400],
    [`${'M'.repeat(40)} /v1/x`, 405],
  ];
  it.each(malformed)('I3 judged is sent: %j is refused with %i', async (startLine, status) => {
    await using scene = await createScene({ rules, names });
    expect(await send(scene, startLine)).toMatchObject({ status, request: undefined });
    expect(scene.origin.transcripts.join('')).toBe('');
  });
});

describe('I3 judged is sent: any target', () => {
  /** Every path that some origin could read from this one. Shares no code with the proxy. */
  function readingsOf(sent: string): readonly string[] {
    const readings = new Set<string>();
    let path = sent.split('?', 1)[0] ?? '';
    for (let depth = 0; depth < 6; depth += 1) {
      for (const slashed of [path, path.replaceAll('\\', '/')]) {
        for (const cut of [slashed, slashed.replaceAll(/;[^/]*/g, '')])
          readings.add(withoutDots(cut.split('/')));
      }
      path = path.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      );
    }
    return [...readings];
  }

  function withoutDots(segments: readonly string[]): string {
    const resolved: string[] = [];
    for (const segment of segments) {
      if (segment === '..') resolved.pop();
      else if (segment !== '.' && segment !== '') resolved.push(segment);
    }
    return `/${resolved.join('/')}`;
  }

  it('I3 judged is sent: is sent unchanged or not at all, and no origin can read a path outside /v1', async () => {
    await using scene = await createScene({ rules, names });
    await using client = await scene.tunnel();
    const piece = fc.constantFrom(
      '/',
      '/',
      '.',
      '..',
      'v1',
      'v2',
      'x',
      '%2f',
      '%2F',
      '%5c',
      '\\',
      '%2e',
      '%2E',
      '%25',
      '%252e',
      '%32',
      ';',
      ';a=1',
      '..;',
      '?',
      'v1/',
      '/v1/',
      '%76',
      '%00',
      '%',
      '%C3%A9',
      '%C0',
      '{',
      '~',
      '//',
      '*',
      '=',
      '+',
    );
    const target = fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join('')}`);
    const scoped = target.map((text) => `/v1${text}`);
    await fc.assert(
      fc.asyncProperty(fc.oneof(target, scoped, scoped), async (text) => {
        const before = scene.origin.requests.length;
        await client.send(head(`GET ${text}`, scene.at()));
        const { head: response } = await client.readResponse();
        const arrived = scene.origin.requests.slice(before);
        expect(arrived.map((request) => request.target)).toEqual(response.status === 200 ? [text] : []);
        expect([200, 400]).toContain(response.status);
        const [request] = arrived;
        if (request === undefined || !isInjected(request)) return;
        for (const reading of readingsOf(text)) expect(`${reading}/`).toMatch(/^\/v1\//);
      }),
      { numRuns: runs(600) },
    );
  });
});
