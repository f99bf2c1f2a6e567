// The preload for Node versions that ignore the proxy variables. Its part for http and https runs in this Node too, as if it
// were such a version; its part for fetch needs one, which is a `node` of PATH if one is old enough.
import { spawnSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentPreload, withPreload } from '../../../src/cli/client/node-preload.ts';
import { readsProxyVariables } from '../../../src/cli/process/old-node.ts';
import { createOrigin, jsonResponse, type RecordingOrigin } from '../../support/recording-origin.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { runToEnd } from '../../support/spawned-process.ts';
import { createTestAuthority } from '../../support/test-authority.ts';

const asked: { readonly authority: string | undefined; readonly login: string | undefined }[] = [];
const authority = createTestAuthority();
let scratch: Scratch;
let origin: RecordingOrigin;
let clear: RecordingOrigin;
let proxy: Server;
let caFile: string;

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** Refuses refused.test, and connects port 443 to the TLS origin, any other port to the one without TLS. */
function createConnectProxy(): Server {
  return createServer().on('connect', (request, socket) => {
    asked.push({ authority: request.url, login: request.headers['proxy-authorization'] });
    if (request.url?.startsWith('refused.test')) return socket.end('HTTP/1.1 403 Forbidden (denied)\r\n\r\n');
    const target = connect(request.url?.endsWith(':443') ? origin.port : clear.port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    return socket.on('error', () => target.destroy()).on('close', () => target.destroy());
  });
}

beforeAll(async () => {
  scratch = await createScratch();
  const respond = async ({ send }: { send: (bytes: Buffer) => Promise<void> }): Promise<void> =>
    send(jsonResponse({ ok: true }));
  origin = await createOrigin({ tls: { authority, names: ['api.test'] }, respond });
  clear = await createOrigin({ respond });
  proxy = createConnectProxy();
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  caFile = await scratch.write('ca.pem', authority.certificatePem);
});

afterAll(async () => {
  proxy.close();
  await Promise.all([origin.close(), clear.close()]);
  await scratch[Symbol.asyncDispose]();
});

const GET = `
  const http = require('node:http'), https = require('node:https');
  const get = (module, url, options = {}) => new Promise((resolve) => {
    module.get(url, options, (response) => response.resume().on('end', () => resolve(response.statusCode)))
      .on('error', (error) => resolve(error.message));
  });
  const show = (value) => { console.log(JSON.stringify(value)); process.exit(); };
`;

type Ran = { readonly shown: unknown; readonly asked: readonly (string | undefined)[] };

/** Runs a script with the preload; `shown` is what it passed to show(). */
async function evaluate(
  node: string,
  preload: string,
  script: string,
  more: NodeJS.ProcessEnv = {},
): Promise<Ran> {
  const file = await scratch.write('agent-preload-0123456789abcdef.cjs', preload);
  asked.length = 0;
  const url = `http://user:p%40ss@127.0.0.1:${portOf(proxy)}`;
  const env = {
    HTTPS_PROXY: url,
    NODE_EXTRA_CA_CERTS: caFile,
    NODE_OPTIONS: withPreload(undefined, file),
    ...more,
  };
  const { code, stdout, stderr } = await runToEnd(node, ['-e', `${GET}${script}`], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return { shown: JSON.parse(stdout), asked: asked.map((one) => one.authority) };
}

/** The text as an old version would run it: Node's own support of the variables stays off. */
const asOld = agentPreload
  .replace(/const readsVariables = .*/, 'const readsVariables = false;')
  .replace("process.env.NODE_USE_ENV_PROXY === '1'", 'true');

const runAsOld = (script: string, more?: NodeJS.ProcessEnv): Promise<Ran> =>
  evaluate(process.execPath, asOld, script, more);

describe('in a Node that ignores the proxy variables, the preload', () => {
  const used: readonly (readonly [what: string, request: string, at: string])[] = [
    ['the Agent of all requests', "get(https, 'https://api.test/')", 'api.test:443'],
    [
      'an Agent of a library',
      "get(https, 'https://api.test/', { agent: new https.Agent() })",
      'api.test:443',
    ],
    ['no Agent', "get(https, 'https://api.test/', { agent: false })", 'api.test:443'],
    [
      'a class that adds no connections of its own',
      "get(https, 'https://api.test/', { agent: new (class extends https.Agent {})() })",
      'api.test:443',
    ],
    ['http://', "get(http, 'http://api.test/')", 'api.test:80'],
  ];
  it.each(used)('sends requests through the proxy: %s', async (_, request, at) => {
    expect(await runAsOld(`${request}.then(show)`)).toEqual({ shown: 200, asked: [at] });
    expect(asked[0]?.login).toBe(`Basic ${Buffer.from('user:p@ss').toString('base64')}`);
  });

  it('keeps a connection for the next request of its Agent', async () => {
    const script = `
      const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
      get(https, 'https://api.test/1', { agent }).then(() => get(https, 'https://api.test/2', { agent })).then(show);`;
    expect(await runAsOld(script)).toEqual({ shown: 200, asked: ['api.test:443'] });
  });

  it('reports what the proxy refused', async () => {
    const { shown } = await runAsOld("get(https, 'https://refused.test/').then(show)");
    expect(shown).toBe('The proxy refused refused.test:443: 403 Forbidden (denied)');
  });

  it('leaves alone a class that makes its connections itself', async () => {
    const script = `
      class Own extends https.Agent { createConnection(options, callback) { callback(new Error('its own')); } }
      get(https, 'https://api.test/', { agent: new Own() }).then(show);`;
    expect(await runAsOld(script)).toEqual({ shown: 'its own', asked: [] });
  });

  const direct: readonly (readonly [noProxy: string, isDirect: boolean])[] = [
    ['127.0.0.1', true],
    ['other.test, 127.0.0.1:PORT', true],
    ['*', true],
    ['127.0.0.1:1', false],
    ['.0.0.1', true],
    ['*.0.0.1', true],
    ['0.0.1', false],
    ['', false],
  ];
  it.each(direct)('connects directly to the hosts of NO_PROXY=%s: %s', async (noProxy, isDirect) => {
    const NO_PROXY = noProxy.replace('PORT', String(clear.port));
    const at = `127.0.0.1:${clear.port}`;
    const ran = await runAsOld(`get(http, 'http://${at}/').then(show)`, { NO_PROXY });
    expect(ran).toEqual({ shown: 200, asked: isDirect ? [] : [at] });
  });

  it.each(['', 'not a URL', 'socks5://127.0.0.1:1'])(
    'does nothing with HTTPS_PROXY=%s',
    async (HTTPS_PROXY) => {
      const script = `get(http, 'http://127.0.0.1:${clear.port}/').then(show)`;
      expect(await runAsOld(script, { HTTPS_PROXY })).toEqual({ shown: 200, asked: [] });
    },
  );

  it('reads no https and no undici until they are used', async () => {
    const script =
      'show(process.moduleLoadList.filter((name) => / (https|tls|internal\\/deps\\/undici.*)$/.test(name)));';
    const { code, stdout } = await runToEnd(
      process.execPath,
      ['-e', script.replace('show(', 'console.log(')],
      {
        env: {
          HTTPS_PROXY: 'http://127.0.0.1:9',
          NODE_OPTIONS: withPreload(
            undefined,
            await scratch.write('agent-preload-0123456789abcdef.cjs', asOld),
          ),
        },
      },
    );
    expect([code, stdout]).toEqual([0, '[]\n']);
  });
});

/** The first `node` of PATH that is old enough. */
function findOldNode(): { readonly node: string; readonly version: string } | undefined {
  const directories = (process.env['PATH'] ?? '').split(delimiter);
  const found = directories.map((directory) => {
    const node = join(directory, 'node');
    return { node, version: spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout?.trim() ?? '' };
  });
  return found.find(({ version }) => /^v(?:18|2\d)\./.test(version) && !readsProxyVariables(version));
}

const old = findOldNode();

describe.runIf(old)(`in Node ${old?.version ?? '18 to 22.20'}, the preload`, () => {
  const runInOld = (script: string): Promise<Ran> =>
    evaluate(old?.node ?? '', agentPreload, script, { NODE_USE_ENV_PROXY: '1' });

  it('sends fetch through the proxy, also when the program has touched its classes before', async () => {
    const script = "new Headers(); fetch('https://api.test/').then((response) => show(response.status));";
    expect(await runInOld(script)).toEqual({ shown: 200, asked: ['api.test:443'] });
  });

  it('reports what the proxy refused', async () => {
    const script = "fetch('https://refused.test/').catch((error) => show(error.cause.message));";
    expect((await runInOld(script)).shown).toBe('The proxy refused refused.test:443: 403 Forbidden (denied)');
  });

  it('leaves alone a dispatcher that the program sets', async () => {
    const script = `
      globalThis[Symbol.for('undici.globalDispatcher.1')]; // as a library looks for it
      const dispatch = () => { throw new Error('its own'); };
      setImmediate(() => {
        Object.defineProperty(globalThis, Symbol.for('undici.globalDispatcher.1'), { value: { dispatch } });
        fetch('https://api.test/').catch((error) => show(error.cause?.message ?? error.message));
      });`;
    expect(await runInOld(script)).toEqual({ shown: 'its own', asked: [] });
  });
});
