// curl: tunnels and plain requests, unusual spellings, uploads that wait for a 100, and the token of the proxy.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import type { Finished } from '../support/spawned-process.ts';
import { isInstalled, runClient, titleOf } from './client-programs.ts';
import { createScene, credentialsAt, INJECTED, type Scene, SECRET } from './interop-scene.ts';

describe.runIf(isInstalled('curl'))(titleOf('curl'), () => {
  let scene: Scene;
  beforeAll(async () => void (scene = await createScene()));
  afterAll(() => scene[Symbol.asyncDispose]());

  const curl = (...args: readonly string[]): Promise<Finished> => runClient('curl', args, scene.proxy);
  const lastCredential = (): readonly string[] | undefined => credentialsAt(scene.origin).at(-1);

  it('gets an injected credential that it never sees', async () => {
    const url = `https://good.test:${scene.origin.port}/v1/models`;
    const { code, stdout, stderr } = await curl(
      '--verbose',
      '-H',
      'Authorization: mine',
      '-H',
      'authorization: too',
      url,
    );
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ target: '/v1/models' });
    expect(lastCredential()).toEqual([INJECTED]);
    expect(stdout + stderr).not.toContain(SECRET);
  });

  it.each(['GOOD.Test', 'good.test.', 'GOOD.Test.'])(
    'reaches the rule of good.test as %s',
    async (spelling) => {
      const { code, stderr } = await curl(`https://${spelling}:${scene.origin.port}/`);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(lastCredential()).toEqual([INJECTED]);
    },
  );

  it('reuses a tunnel for several requests', async () => {
    const url = `https://good.test:${scene.origin.port}`;
    const { code, stderr } = await curl('--verbose', `${url}/1`, `${url}/2`, `${url}/3`);
    expect(code).toBe(0);
    expect(stderr.match(/^> CONNECT /gm)).toHaveLength(1);
    expect(scene.origin.requests.slice(-3).map(({ target }) => target)).toEqual(['/1', '/2', '/3']);
  });

  it('is tunnelled unchanged to a host without a rule, and trusts its own certificate', async () => {
    const url = `http://plain.test:${scene.plainOrigin.port}/p?q`;
    expect((await curl('-H', 'Authorization: mine', url)).code).toBe(0);
    expect(scene.plainOrigin.requests.at(-1)).toMatchObject({ target: '/p?q' });
    expect(credentialsAt(scene.plainOrigin).at(-1)).toEqual(['mine']);
  });

  it('can open a blind tunnel for plain http with -p', async () => {
    const url = `http://plain.test:${scene.plainOrigin.port}/tunnelled`;
    expect((await curl('--proxytunnel', '-H', 'Authorization: mine', url)).code).toBe(0);
    expect(scene.plainOrigin.requests.at(-1)).toMatchObject({ target: '/tunnelled' });
    expect(credentialsAt(scene.plainOrigin).at(-1)).toEqual(['mine']);
  });

  it.each([
    ['in a plain request', []],
    ['inside a tunnel', ['--proxytunnel']],
  ])('gets no credential over http:// %s', async (_, flags) => {
    const before = scene.plainOrigin.connections;
    const url = `http://good.test:${scene.plainOrigin.port}/`;
    const { stdout } = await curl(...flags, '--write-out', '\n%{http_code}', url);
    expect(stdout).toMatch(/"error":"cleartext_refused"[^]*\n403$/);
    expect(scene.plainOrigin.connections).toBe(before);
  });

  it('uploads a body that waits for 100 Continue', async () => {
    const file = await scene.scratch.write('upload', 'u'.repeat(2_000_000));
    const url = `https://good.test:${scene.origin.port}/up`;
    const { code, stdout, stderr } = await curl(
      '--verbose',
      '-H',
      'Expect: 100-continue',
      '--data-binary',
      `@${file}`,
      url,
    );
    expect(code).toBe(0);
    expect(stderr).toContain('HTTP/1.1 100 Continue');
    expect(JSON.parse(stdout)).toMatchObject({ method: 'POST', body: { length: 2_000_000 } });
  });

  it('gets the 502 of a failing callback, and the origin gets nothing', async () => {
    const before = scene.origin.requests.length;
    scene.callback.respondWith(async (exchange) => exchange.reset());
    const url = `https://callback.test:${scene.origin.port}/`;
    const { stdout } = await curl('--include', url);
    expect(stdout).toMatch(/^HTTP\/1\.1 502 [^]*X-Sallyport-Error: callback_failed/m);
    expect(stdout).toContain('callback resolution failed');
    expect(scene.origin.requests).toHaveLength(before);
  });
});

describe.runIf(isInstalled('curl'))('curl, when the proxy requires a token', () => {
  const TOKEN = 'token-of-the-proxy-1234';
  let scene: Scene;
  beforeAll(async () => {
    const scratch = await createScratch();
    const file = await scratch.write('token', TOKEN);
    scene = await createScene({ env: { SALLYPORT_AUTH_TOKEN_FILE: file } });
    await scratch[Symbol.asyncDispose]();
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  const rows: readonly (readonly [string, readonly string[], number])[] = [
    ['is rejected without it', [], 407],
    ['is rejected with a wrong one', ['--proxy-user', 'x:wrong'], 407],
    ['is accepted with it', ['--proxy-user', `sallyport:${TOKEN}`], 200],
    ['is accepted when it waits for the 407', ['--proxy-anyauth', '--proxy-user', `sallyport:${TOKEN}`], 200],
  ];
  it.each(rows)('%s', async (_, flags, expected) => {
    const before = scene.origin.requests.length;
    const format = expected === 407 ? '%{http_connect}' : '%{http_code}';
    const args = [
      ...flags,
      '--output',
      '/dev/null',
      '--write-out',
      format,
      `https://good.test:${scene.origin.port}/`,
    ];
    expect((await runClient('curl', args, scene.proxy)).stdout).toBe(String(expected));
    const arrived = scene.origin.requests.slice(before);
    expect(arrived).toHaveLength(expected === 200 ? 1 : 0);
    expect(arrived.flatMap(({ headers }) => headers).filter(([name]) => /^proxy-/i.test(name))).toEqual([]);
  });
});
