// `sallyport proxy` as an operator meets it: what it says before it starts or instead of it, what its signals do, and
// with which code it ends.
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createOrigin } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { SpawnedProcess, program, runToEnd } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';
import { everyNth } from '../support/run-size.ts';

const nameTable = join(import.meta.dirname, '..', 'support', 'name-table.ts');
const origins = createTestAuthority();

function rules(value: string): unknown {
  return { rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'plaintext', value }] }] };
}

function spawnProxy(
  scratch: Scratch,
  args: readonly string[],
  env: Record<string, string> = {},
  runtimeFlags: readonly string[] = [],
): SpawnedProcess {
  const flags = ['--import', nameTable, ...runtimeFlags];
  return new SpawnedProcess(process.execPath, [...flags, program, 'proxy', ...args], {
    env: {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: scratch.path,
      ...env,
    },
  });
}

const isReady = (record: Readonly<Record<string, unknown>>): boolean => record['msg'] === 'ready';

describe('an invalid start', () => {
  type Row = readonly [
    what: string,
    give: (scratch: Scratch) => Promise<{ args?: string[]; env?: Record<string, string> }>,
    says: RegExp,
  ];
  const rows: readonly Row[] = [
    [
      'an unknown key of the config',
      async (scratch) => ({
        args: ['--config', await scratch.write('config.json', { listne: 'x', egress: { ports: ['a'] } })],
      }),
      /config\.json: egress\.ports\[0\]: .*\n(?:.*\n)*.*config\.json: .*listne/,
    ],
    [
      'a proxy_config with two errors',
      async (scratch) => ({
        args: [
          '--proxy-config',
          await scratch.write('rules.json', {
            rules: [{ match_hosts: ['*'], headers: [{ name: 'Host', type: 'plaintext', value: 'x' }] }],
          }),
        ],
      }),
      /rules\.json: rules\[0\]\.match_hosts\[0\]: [^]*rules\.json: rules\[0\]\.headers\[0\]\.name: /,
    ],
    [
      'an option with a value that does not fit',
      async () => ({ args: ['--listen', 'localhost'] }),
      /^sallyport: --listen \(SALLYPORT_LISTEN\): must be host:port/m,
    ],
    [
      'a proxy_config as the config',
      async (scratch) => ({ args: ['--config', await scratch.write('rules.json', rules('x'))] }),
      /rules\.json: rules: This key belongs in the proxy_config, .* --proxy-config\n/,
    ],
    [
      'a config as the proxy_config',
      async (scratch) => ({
        args: ['--proxy-config', await scratch.write('config.json', { listen: '127.0.0.1:0' })],
      }),
      /config\.json: listen: This key belongs in the config of the operator, .* --config\n/,
    ],
    [
      'a secret that nobody gave',
      async (scratch) => ({
        args: [
          '--proxy-config',
          await scratch.write('rules.json', {
            rules: [
              {
                match_hosts: ['a.test'],
                headers: [{ name: 'X', type: 'workspace_secret', value: '{MISSING_ONE}' }],
              },
            ],
          }),
        ],
      }),
      /rules\.json: rules\[0\]\.headers\[0\]\.value: .*MISSING_ONE/,
    ],
    [
      'a config that is no JSON',
      async (scratch) => ({ args: ['--config', await scratch.write('c.json', '{"a": 1,\n "key": secret}')] }),
      /c\.json:2:9: not valid JSON/,
    ],
    [
      'a proxy_config that is no JSON',
      async (scratch) => ({ args: ['--proxy-config', await scratch.write('p.json', '{')] }),
      /p\.json.*: not valid JSON/,
    ],
    [
      'a config that is not there',
      async () => ({ args: ['--config', '/nonexistent/c.json'] }),
      /\/nonexistent\/c\.json cannot be read: ENOENT/,
    ],
    [
      'a variable with a value that does not fit',
      async () => ({ env: { SALLYPORT_EGRESS_PORTS: '80,http', SALLYPORT_LOG_LEVEL: 'loud' } }),
      /SALLYPORT_EGRESS_PORTS[^]*SALLYPORT_LOG_LEVEL/,
    ],
    [
      'an address that others reach, without a word on who may',
      async () => ({ env: { SALLYPORT_LISTEN: '0.0.0.0:0' } }),
      /listen|SALLYPORT_LISTEN.*auth/,
    ],
    [
      'verification switched off by Node’s variable',
      async () => ({ env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } }),
      /NODE_TLS_REJECT_UNAUTHORIZED.*SALLYPORT_UPSTREAM_CA/,
    ],
    [
      'code that Node should load first',
      async () => ({ env: { NODE_OPTIONS: '--no-warnings --import=data:text/javascript,0' } }),
      /NODE_OPTIONS has --import, .*remove it/,
    ],
    [
      'a runtime that should tell what passes',
      async () => ({ env: { NODE_DEBUG: 'nothing' } }),
      /NODE_DEBUG .*SALLYPORT_LOG_LEVEL/,
    ],
    [
      'a line of secrets that is none',
      async (scratch) => ({ args: ['--secrets-file', await scratch.write('secrets.env', 'A=b\nsecret}')] }),
      /secrets\.env:2: this line must be NAME=value/,
    ],
    [
      'a proxy token that is too short',
      async (scratch) => ({ env: { SALLYPORT_AUTH_TOKEN_FILE: await scratch.write('token', 'short') } }),
      /token: the proxy token must have at least 16 characters/,
    ],
    [
      'half a CA',
      async (scratch) => {
        await mkdir(join(scratch.path, 'public'));
        await scratch.write('public/ca.pem', 'x');
        return {};
      },
      /ca\.key: cannot be opened \(ENOENT\)/,
    ],
    ['a flag that does not exist', async () => ({ args: ['--verbose'] }), /--verbose/],
  ];
  everyNth(3, rows, (some, options) =>
    it.each(some)('with %s reports where it is and ends with code 2', options, async (_, give, says) => {
      await using scratch = await createScratch();
      const { args = [], env = {} } = await give(scratch);
      await using child = spawnProxy(scratch, args, env);
      expect(await child.exited).toEqual({ code: 2, signal: null });
      expect(child.stderr).toMatch(says);
      expect(child.stderr).not.toMatch(/\bat .*\.[jt]s:\d+|secret\}/);
      expect(child.records.some(isReady)).toBe(false);
    }),
  );
});

it.runIf(process.platform === 'linux').each([
  ['in its configuration', [], { SALLYPORT_LISTEN: 'nonsense' }],
  ['in a file that is not there', ['--config', '/nonexistent/c.json'], {}],
] as const)('a start that fails %s leaves no secrets of its environment behind', async (_, args, env) => {
  await using scratch = await createScratch();
  const witness = await scratch.write(
    'witness.mjs',
    `const [, path] = /:(.*)/.exec(process.env.SALLYPORT_HANDED_SECRETS ?? '') ?? [];
    if (path !== undefined) console.log(JSON.stringify({ msg: 'handed over', path }));`,
  );
  const variables = { SALLYPORT_SECRET_A: 'sesame-open-now', ...env };
  await using child = spawnProxy(scratch, args, variables, ['--import', witness]);
  expect(await child.exited).toEqual({ code: 2, signal: null });
  const { path } = await child.record(({ msg }) => msg === 'handed over');
  expect(existsSync(String(path))).toBe(false);
});

describe('a start', () => {
  it('creates a CA, logs where everything is, and serves on the logged port', async () => {
    await using scratch = await createScratch();
    await using child = spawnProxy(scratch, []);
    const ready = await child.record(isReady);
    expect(ready).toMatchObject({
      ca: join(scratch.path, 'public', 'ca.pem'),
      revision: 0,
      pid: expect.any(Number),
    });
    expect(ready['fingerprint']).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
    const [, port] = /^http:\/\/127\.0\.0\.1:(\d+)$/.exec(String(ready['proxy'])) ?? [];
    expect(Number(port)).toBeGreaterThan(0);
    await using client = await WireClient.connect(Number(port));
    await client.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    expect((await client.readResponse()).head.status).toBe(200);
    expect((await stat(join(scratch.path, 'secret', 'ca.key'))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(scratch.path, 'public', 'ca.pem'), 'utf8')).not.toContain('PRIVATE');
  });

  it('moves the files of an older version, and clients trust the same CA', async () => {
    await using scratch = await createScratch();
    await using first = spawnProxy(scratch, []);
    const { fingerprint } = await first.record(isReady);
    first.kill('SIGTERM');
    await first.exited;
    for (const part of ['secret', 'public']) {
      for (const name of await readdir(join(scratch.path, part)))
        await rename(join(scratch.path, part, name), join(scratch.path, name));
      await rm(join(scratch.path, part), { recursive: true });
    }
    await rm(join(scratch.path, 'ca-bundle.pem'));
    await using second = spawnProxy(scratch, []);
    expect((await second.record(isReady))['fingerprint']).toBe(fingerprint);
    const { moved } = await second.record(({ msg }) => String(msg).startsWith('files moved'));
    expect(moved).toEqual(['ca.pem', 'ca.key', 'admin-token']);
    expect(await readdir(join(scratch.path, 'public'))).toContain('ca.pem');
  });

  it('publishes the CA bundle for sallyport env, and again if the CA is another one', async () => {
    await using scratch = await createScratch();
    const bundle = join(scratch.path, 'public', 'ca-bundle.pem');
    for (const isFirst of [true, false]) {
      await using child = spawnProxy(scratch, []);
      const { ca } = await child.record(isReady);
      const certificate = (await readFile(String(ca), 'utf8')).trim();
      // It is written after the proxy is ready.
      await expect.poll(() => readFile(bundle, 'utf8').catch(() => '')).toContain(certificate);
      const env = await runToEnd(process.execPath, [program, 'env', '--state-dir', scratch.path]);
      expect(env).toMatchObject({ code: 0, stderr: '' });
      expect(env.stdout).toContain(`export SSL_CERT_FILE='${bundle}'\n`);
      child.kill('SIGTERM');
      await child.exited;
      if (isFirst) for (const file of ['public/ca.pem', 'secret/ca.key']) await rm(join(scratch.path, file));
    }
  });

  it.runIf(process.platform === 'linux')(
    'with a CA of the operator’s needs no directory that can be written',
    async () => {
      await using scratch = await createScratch();
      await using first = spawnProxy(scratch, []);
      await first.record(isReady);
      const env = {
        SALLYPORT_CA_CERT: join(scratch.path, 'public', 'ca.pem'),
        SALLYPORT_CA_KEY: join(scratch.path, 'secret', 'ca.key'),
        SALLYPORT_ADMIN_LISTEN: 'off',
        // Nothing can be created there, not even by root.
        SALLYPORT_STATE_DIR: '/sys/none',
      };
      await using second = spawnProxy(scratch, [], env);
      const { error } = await second.record(({ msg }) =>
        String(msg).startsWith('the CA bundle cannot be written'),
      );
      expect(error).toBe('ENOENT');
      await second.record(isReady);
    },
  );

  it('on a reachable address is allowed if the operator sets which clients may use it', async () => {
    await using scratch = await createScratch();
    for (const env of [{ SALLYPORT_AUTH: 'none' }, { SALLYPORT_ALLOW_CLIENTS: '127.0.0.0/8' }]) {
      await using child = spawnProxy(scratch, ['--listen', '0.0.0.0:0'], env);
      expect(String((await child.record(isReady))['proxy'])).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/);
    }
  });

  it('on IPv6 logs an address that can be pasted', async () => {
    await using scratch = await createScratch();
    await using child = spawnProxy(scratch, ['--listen', '[::1]:0']);
    expect(String((await child.record(isReady))['proxy'])).toMatch(/^http:\/\/\[::1\]:\d+$/);
  });

  it('with a port in use ends with code 1 and one line', async () => {
    await using scratch = await createScratch();
    await using taken = await createOrigin();
    await using child = spawnProxy(scratch, ['--listen', `127.0.0.1:${taken.port}`]);
    expect(await child.exited).toEqual({ code: 1, signal: null });
    expect(child.stderr).toMatch(/^sallyport: .*EADDRINUSE.*\n$/);
  });
});

describe('signals', () => {
  it('SIGHUP applies a valid file, rejects an invalid one without a change, and applies a valid one again', async () => {
    await using scratch = await createScratch();
    await using origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] } });
    const file = await scratch.write('rules.json', rules('one'));
    const upstreamCa = await scratch.write('upstream.pem', origins.certificatePem);
    await using child = spawnProxy(scratch, ['--proxy-config', file], { SALLYPORT_UPSTREAM_CA: upstreamCa });
    const ready = await child.record(isReady);
    const port = Number(/(\d+)$/.exec(String(ready['proxy']))?.[1]);
    const ca = await readFile(join(scratch.path, 'public', 'ca.pem'), 'utf8');
    const authority = `api.test:${origin.port}`;
    const injected = async (): Promise<string | undefined> => {
      await using client = await WireClient.connectThrough(port, authority, { ca, name: 'api.test' });
      await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
      await client.readResponse();
      return origin.requests.at(-1)?.headers.find(([name]) => name === 'X-Key')?.[1];
    };
    expect(await injected()).toBe('one');

    await writeFile(file, JSON.stringify(rules('two')));
    child.kill('SIGHUP');
    await child.record((record) => record['msg'] === 'proxy_config applied' && record['revision'] === 2);
    expect(await injected()).toBe('two');

    await writeFile(file, JSON.stringify({ rules: [{ match_hosts: ['*'], headers: [] }] }));
    child.kill('SIGHUP');
    const refused = await child.record(({ msg }) => String(msg).startsWith('proxy_config rejected'));
    expect(refused).toMatchObject({
      level: 'error',
      file,
      issues: expect.arrayContaining([expect.anything()]),
    });
    expect(await injected()).toBe('two');

    await writeFile(file, '{"rules": [');
    child.kill('SIGHUP');
    const unreadable = await child.record(({ msg }) => String(msg).startsWith('reload failed'));
    expect(unreadable).toMatchObject({ level: 'error', reason: expect.stringContaining(file) });
    expect(await injected()).toBe('two');

    await writeFile(file, JSON.stringify(rules('three')));
    child.kill('SIGHUP');
    await child.record((record) => record['msg'] === 'proxy_config applied' && record['revision'] === 3);
    expect(await injected()).toBe('three');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    '%s lets a running request end, then ends with code 0',
    async (signal) => {
      const gate = Promise.withResolvers<void>();
      await using scratch = await createScratch();
      await using origin = await createOrigin({
        respond: async ({ send }) => {
          await gate.promise;
          await send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        },
      });
      await using child = spawnProxy(scratch, []);
      const port = Number(/(\d+)$/.exec(String((await child.record(isReady))['proxy']))?.[1]);
      await using client = await WireClient.connect(port);
      const authority = `127.0.0.1:${origin.port}`;
      await client.send(`GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
      await origin.request(0);
      child.kill(signal);
      await child.record(({ msg }) => msg === 'draining');
      gate.resolve();
      const response = await client.readResponse();
      expect([response.head.status, response.text]).toEqual([200, 'ok']);
      client.end();
      expect(await child.exited).toEqual({ code: 0, signal: null });
      expect(child.records.filter(({ msg }) => msg === 'exchange')).toHaveLength(1);
    },
  );

  it('SIGTERM with drain.delay_ms: it is not ready, serves on, and ends at the second signal', async () => {
    await using scratch = await createScratch();
    await using origin = await createOrigin();
    await using child = spawnProxy(scratch, [], { SALLYPORT_DRAIN_DELAY_MS: '600000' });
    const ready = await child.record(isReady);
    const port = Number(/(\d+)$/.exec(String(ready['proxy']))?.[1]);
    const statusOf = async (target: string): Promise<number> => {
      await using client = await WireClient.connect(port);
      await client.send(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${origin.port}\r\n\r\n`);
      return (await client.readResponse()).head.status;
    };
    expect(await statusOf('/readyz')).toBe(200);
    child.kill('SIGTERM');
    await child.record(({ msg }) => msg === 'draining');
    expect([
      await statusOf('/readyz'),
      (await fetch(`${String(ready['admin'])}/readyz`)).status,
      await statusOf(`http://127.0.0.1:${origin.port}/`),
    ]).toEqual([503, 503, 200]);
    child.kill('SIGTERM');
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });

  it('SIGTERM with nothing running ends at once, and closes idle connections', async () => {
    await using scratch = await createScratch();
    await using child = spawnProxy(scratch, []);
    const port = Number(/(\d+)$/.exec(String((await child.record(isReady))['proxy']))?.[1]);
    await using client = await WireClient.connect(port);
    child.kill('SIGTERM');
    expect(await client.finished).toBe('end');
    client.end();
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });
});

describe('the entry point', () => {
  it.each([
    ['nothing', []],
    ['an unknown command', ['serve']],
    ['the name of an object property', ['constructor']],
  ])('%s prints the usage and ends with code 2', async (_, args) => {
    const { code, stderr } = await runToEnd(process.execPath, [program, ...args]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^usage: sallyport COMMAND/m);
  });
});
