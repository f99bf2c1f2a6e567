// `sallyport proxy` with its admin API and its state, as an operator meets them: what the ready line says, what stops a
// start, what a kill leaves, and what nobody can read.
import { chmod, mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { type AskAdmin, createAdminClient } from '../support/admin-client.ts';
import { createOrigin, type RecordingOrigin } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { type LogRecord, SpawnedProcess, program, runToEnd } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecar, createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

const nameTable = join(import.meta.dirname, '..', 'support', 'name-table.ts');
const origins = createTestAuthority();
const CONFIG = '/v1/proxy_config';
const TOKEN = 'canary-admin-token-92eb5ffee6ae2fec3ad71c777531578f';
const KEY = 'Y2FuYXJ5LXN0YXRlLWtleS0wMTIzNDU2Nzg5YWJjZGU';

const KILLS = 10;

// Each starts several processes, one after the other.
vi.setConfig({ testTimeout: 60_000 });

function spawnProxy(
  scratch: Scratch,
  env: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): SpawnedProcess {
  return new SpawnedProcess(process.execPath, ['--import', nameTable, program, 'proxy', ...args], {
    env: {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: scratch.path,
      ...env,
    },
  });
}

const isReady = ({ msg }: LogRecord): boolean => msg === 'ready';

type Started = {
  readonly ready: LogRecord;
  readonly admin: AskAdmin;
  /** Sends one request to the origin and returns the X-Key that arrived. */
  key(origin: RecordingOrigin): Promise<string | undefined>;
};

/** Waits for the ready line, and takes the token from where it says. */
async function started(child: SpawnedProcess, token?: string): Promise<Started> {
  const ready = await child.record(isReady);
  const text = token ?? (await readFile(String(ready['admin_token']), 'utf8')).trim();
  const ca = await readFile(String(ready['ca']), 'utf8');
  return {
    ready,
    admin: createAdminClient(String(ready['admin']), text),
    async key(origin) {
      const authority = `api.test:${origin.port}`;
      const port = Number(new URL(String(ready['proxy'])).port);
      await using client = await WireClient.connectThrough(port, authority, { ca, name: 'api.test' });
      await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
      await client.readResponse();
      return origin.requests.at(-1)?.headers.find(([name]) => name === 'X-Key')?.[1];
    },
  };
}

it('the bundle has the page of the admin API', async () => {
  await using scratch = await createScratch();
  await using child = spawnProxy(scratch);
  const { ready } = await started(child);
  const page = await fetch(`${String(ready['admin'])}/ui`);
  expect([page.status, (await page.text()).includes('action="/ui/sign-in"')]).toEqual([401, true]);
});

function rules(value: string, type = 'plaintext'): { readonly rules: readonly object[] } {
  return { rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Key', type, value }] }] };
}

async function stop(child: SpawnedProcess): Promise<void> {
  child.kill('SIGTERM');
  expect(await child.exited).toEqual({ code: 0, signal: null });
}

describe('a start', () => {
  it('generates a token in a file of mode 0600, and logs where everything is', async () => {
    await using scratch = await createScratch();
    await using child = spawnProxy(scratch);
    const { ready, admin } = await started(child);
    const file = join(scratch.path, 'secret', 'admin-token');
    expect(ready).toMatchObject({
      level: 'info',
      proxy: expect.stringMatching(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/),
      admin: expect.stringMatching(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/),
      admin_token: file,
      ca: join(scratch.path, 'public', 'ca.pem'),
      revision: 0,
      pid: child.pid,
    });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await admin('GET', '/v1/sandboxes')).status).toBe(200);
    const token = (await readFile(file, 'utf8')).trim();
    expect(child.stdout + child.stderr).not.toContain(token);
    await stop(child);
    await using again = spawnProxy(scratch);
    expect((await (await started(again, token)).admin('GET', '/v1/sandboxes')).status).toBe(200);
  });

  it('where admin.listen is off opens no admin listener and generates no token', async () => {
    await using scratch = await createScratch();
    await using child = spawnProxy(scratch, { SALLYPORT_ADMIN_LISTEN: 'off' });
    const ready = await child.record(isReady);
    expect(Object.keys(ready)).not.toContain('admin');
    expect(Object.keys(ready)).not.toContain('admin_token');
    expect((await readdir(scratch.path)).toSorted()).toEqual(['public', 'secret']);
    expect(await readdir(join(scratch.path, 'secret'))).toEqual(['ca.key']);
  });

  it('on a unix socket only its user can connect, and with the token', async () => {
    await using scratch = await createScratch();
    const path = join(scratch.path, 'admin.sock');
    await using child = spawnProxy(scratch, { SALLYPORT_ADMIN_LISTEN: `unix:${path}` });
    const ready = await child.record(isReady);
    expect(ready['admin']).toBe(`unix:${path}`);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const token = (await readFile(join(scratch.path, 'secret', 'admin-token'), 'utf8')).trim();
    const curl = async (...args: readonly string[]): Promise<string> =>
      (await runToEnd('curl', ['-s', '-w', ' %{http_code}', '--unix-socket', path, ...args])).stdout;
    expect(await curl('http://localhost/healthz')).toBe('{"status":"ok"}\n 200');
    expect(await curl('http://localhost/v1/sandboxes')).toMatch(/ 401$/);
    const put = ['-X', 'PUT', '-H', 'Content-Type: application/json', '-d', JSON.stringify(rules('x'))];
    const response = await curl(...put, '-H', `X-Api-Key: ${token}`, `http://localhost${CONFIG}`);
    expect(response).toBe('{"revision":1,"warnings":[]}\n 200');
    await stop(child);
    await expect(stat(path)).rejects.toThrow('ENOENT');
  });

  it('replaces a unix socket that a killed process left', async () => {
    await using scratch = await createScratch();
    const env = { SALLYPORT_ADMIN_LISTEN: `unix:${join(scratch.path, 'admin.sock')}` };
    await using killed = spawnProxy(scratch, env);
    await killed.record(isReady);
    killed.kill('SIGKILL');
    await killed.exited;
    await using child = spawnProxy(scratch, env);
    expect((await child.record(isReady))['admin']).toBe(env.SALLYPORT_ADMIN_LISTEN);
  });

  it('with require_config is not ready before rules are applied, on both listeners', async () => {
    await using scratch = await createScratch();
    await using child = spawnProxy(scratch, { SALLYPORT_REQUIRE_CONFIG: 'true' });
    const { ready, admin } = await started(child);
    const statuses = async (): Promise<readonly number[]> => {
      await using client = await WireClient.connect(Number(new URL(String(ready['proxy'])).port));
      await client.send('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n');
      return [(await client.readResponse()).head.status, (await admin('GET', '/readyz')).status];
    };
    expect(await statuses()).toEqual([503, 503]);
    await admin('PUT', CONFIG, rules('x'));
    expect(await statuses()).toEqual([200, 200]);
    await stop(child);
    await using again = spawnProxy(scratch, { SALLYPORT_REQUIRE_CONFIG: 'true' });
    expect((await (await started(again)).admin('GET', '/readyz')).status).toBe(200);
  });

  it('reads the admin token from the configured file', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', `${TOKEN}\n`);
    await using child = spawnProxy(scratch, { SALLYPORT_ADMIN_TOKEN_FILE: file });
    const { ready, admin } = await started(child, TOKEN);
    expect(ready['admin_token']).toBe(file);
    expect((await admin('GET', '/v1/sandboxes')).status).toBe(200);
    expect(await readdir(join(scratch.path, 'secret'))).not.toContain('admin-token');
  });
});

it.runIf(process.platform === 'linux')(
  'the admin token and the state key given in variables are in the environment of nobody',
  async () => {
    await using scratch = await createScratch();
    await using child = spawnProxy(scratch, { SALLYPORT_ADMIN_TOKEN: TOKEN, SALLYPORT_STATE_KEY: KEY });
    const { ready, admin } = await started(child, TOKEN);
    expect(ready).toMatchObject({ admin_token: 'SALLYPORT_ADMIN_TOKEN', pid: child.pid });
    for (const name of ['environ', 'cmdline']) {
      const text = await readFile(`/proc/${child.pid}/${name}`, 'latin1');
      expect(text).toContain(name === 'environ' ? 'SALLYPORT_STATE_DIR=' : 'proxy');
      expect(text).not.toMatch(/canary|Y2FuYXJ5|SALLYPORT_ADMIN_TOKEN|SALLYPORT_STATE_KEY/);
    }
    expect((await admin('PUT', CONFIG, rules('x'))).status).toBe(200);
    // Neither is made where the operator brings it.
    const files = await readdir(join(scratch.path, 'secret'));
    expect(files.toSorted()).toEqual(['ca.key', 'sandboxes', 'state.lock']);
    await stop(child);
    await using again = spawnProxy(scratch, { SALLYPORT_ADMIN_TOKEN: TOKEN, SALLYPORT_STATE_KEY: KEY });
    expect((await started(again, TOKEN)).ready['revision']).toBe(1);
  },
);

describe('a start is stopped, with one line that says what to do, by', () => {
  type Prepared = { readonly env?: Readonly<Record<string, string>>; readonly says: string | RegExp };
  type Row = readonly [what: string, prepare: (scratch: Scratch) => Promise<Prepared>];

  /** A sidecar on the same state, in this process. */
  async function useState(scratch: Scratch, document: unknown, config: object = {}): Promise<TestSidecar> {
    const sidecar = await createTestSidecar({
      admin: true,
      state: join(scratch.path, 'secret'),
      config: { ...config },
    });
    expect((await sidecar.admin('PUT', CONFIG, document)).status).toBe(200);
    return sidecar;
  }

  async function leaveState(scratch: Scratch): Promise<void> {
    await using _sidecar = await useState(scratch, rules('kept'));
  }

  const rows: readonly Row[] = [
    [
      'an admin token that others can read',
      async (scratch) => {
        await mkdir(join(scratch.path, 'secret'));
        const file = await scratch.write('secret/admin-token', TOKEN);
        await chmod(file, 0o644);
        return {
          says: `${file}: mode 0644 gives other users access to the key. chmod 0600 ${file}, and replace the token`,
        };
      },
    ],
    [
      'an admin token that is too short',
      async () => ({
        env: { SALLYPORT_ADMIN_TOKEN: 'canary-short' },
        says: 'SALLYPORT_ADMIN_TOKEN: the admin token must have at least 16 characters',
      }),
    ],
    [
      'an invalid state key',
      async () => ({
        env: { SALLYPORT_STATE_KEY: 'canary' },
        says: 'SALLYPORT_STATE_KEY: must be 32 random bytes as base64, base64url or hex (openssl rand -base64 32)',
      }),
    ],
    [
      'a state key other than the one that sealed',
      async (scratch) => {
        await leaveState(scratch);
        return {
          env: { SALLYPORT_STATE_KEY: KEY },
          says: 'SALLYPORT_STATE_KEY is not the key that encrypted them, or they are damaged. Set the key that encrypted them',
        };
      },
    ],
    [
      'a missing state key',
      async (scratch) => {
        await leaveState(scratch);
        await rm(join(scratch.path, 'secret', 'state.key'));
        return { says: /state\.key: is missing, and files that it encrypted exist\. Restore it, or remove/ };
      },
    ],
    [
      'damaged state',
      async (scratch) => {
        await leaveState(scratch);
        const file = join(scratch.path, 'secret', 'sandboxes', 'default.sealed');
        const bytes = await readFile(file);
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
        await writeFile(file, bytes);
        return {
          says: /sandboxes: 1 of 1 files cannot be used: default\.sealed cannot be decrypted; .* they are damaged/,
        };
      },
    ],
    [
      'an unknown file in the state',
      async (scratch) => {
        await leaveState(scratch);
        await writeFile(join(scratch.path, 'secret', 'sandboxes', 'notes.txt'), 'x');
        return {
          says: /sandboxes: unknown files: notes\.txt\. Move every file that is not named ID\.sealed to another directory/,
        };
      },
    ],
    [
      'a wildcard that was allowed when it was applied, and is no longer',
      async (scratch) => {
        const document = { rules: [{ ...rules('x').rules[0], match_hosts: ['*.github.io'] }] };
        await using _sidecar = await useState(scratch, document, { allow_wildcards: ['*.github.io'] });
        return {
          says: /the proxy_config of sandbox default cannot be used: rules\.0\.match_hosts\.0: .*allow_wildcards/,
        };
      },
    ],
  ];
  it.each(rows)('%s', async (_, prepare) => {
    await using scratch = await createScratch();
    const { env = {}, says } = await prepare(scratch);
    await using child = spawnProxy(scratch, env);
    expect(await child.exited).toEqual({ code: 2, signal: null });
    if (typeof says === 'string') expect(child.stderr).toContain(says);
    else expect(child.stderr).toMatch(says);
    expect(child.stderr).toMatch(/^sallyport: .*\n$/);
    expect(child.stdout + child.stderr).not.toContain('canary');
    expect(child.records.some(isReady)).toBe(false);
  });

  it.each([
    ['the admin API', 'SALLYPORT_ADMIN_LISTEN', 'admin.listen'],
    ['the proxy', 'SALLYPORT_LISTEN', 'listen'],
  ])('a port of %s that is taken, naming %s', async (_, variable, key) => {
    await using scratch = await createScratch();
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const at = taken.address();
    const where = `127.0.0.1:${typeof at === 'object' ? at?.port : ''}`;
    await using child = spawnProxy(scratch, { [variable]: where });
    expect(await child.exited).toEqual({ code: 1, signal: null });
    expect(child.stderr).toMatch(/^sallyport: .*\n$/);
    expect(child.stderr).toContain(where);
    expect(child.stderr).toContain(`change ${key} or ${variable}`);
    taken.close();
  });

  it('another process that uses the same state', async () => {
    await using scratch = await createScratch();
    await using first = await useState(scratch, rules('first'));
    await using second = spawnProxy(scratch);
    expect(await second.exited).toEqual({ code: 1, signal: null });
    expect(second.stderr).toBe(
      `sallyport: ${join(scratch.path, 'secret')}: another process (pid ${process.pid}) uses this state. Stop it, or set another state_dir.\n`,
    );
    expect((await first.admin('PUT', CONFIG, rules('still ours'))).status).toBe(200);
  });
});

describe('at run time', () => {
  it('SIGHUP without a file activates rotated secrets of the operator', async () => {
    await using scratch = await createScratch();
    await using origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] } });
    const secrets = join(scratch.path, 'secrets');
    await mkdir(secrets);
    await writeFile(join(secrets, 'T'), 'first');
    const upstream = await scratch.write('upstream.pem', origins.certificatePem);
    const env = { SALLYPORT_SECRETS_DIR: secrets, SALLYPORT_UPSTREAM_CA: upstream };
    await using child = spawnProxy(scratch, env);
    const { admin, key } = await started(child);
    await admin('PUT', CONFIG, rules('{T}', 'workspace_secret'));
    expect(await key(origin)).toBe('first');
    await writeFile(join(secrets, 'T'), 'rotated');
    child.kill('SIGHUP');
    await child.record(({ msg, revision }) => msg === 'proxy_config applied' && revision === 2);
    expect(await key(origin)).toBe('rotated');
    await rm(join(secrets, 'T'));
    child.kill('SIGHUP');
    await child.record(({ msg }) => String(msg).startsWith('proxy_config rejected'));
    expect(child.stderr).toMatch(/^proxy_config: rules\[0\]\.headers\[0\]\.value: .*T/m);
    expect(await key(origin)).toBe('rotated');
  });

  it('a state that cannot be written is reported, changes nothing, and does not end the process', async () => {
    await using scratch = await createScratch();
    await using child = spawnProxy(scratch);
    const { admin } = await started(child);
    // As a full disk or a volume that is read-only would, for root as well.
    await writeFile(join(scratch.path, 'secret', 'sandboxes'), '');
    const refused = await admin('PUT', CONFIG, rules('x'));
    expect(refused.status).toBe(500);
    expect(refused.body['detail']).toMatch(/^The state could not be written \(\w+\); nothing was changed$/);
    expect((await admin('GET', CONFIG)).body).toMatchObject({ revision: 0 });
    await rm(join(scratch.path, 'secret', 'sandboxes'));
    expect((await admin('PUT', CONFIG, rules('x'))).body).toMatchObject({ revision: 1 });
  });
});

it('killed ten times during updates, it starts each time with the last confirmed document or the next one', {
  tags: ['long'],
}, async () => {
  await using scratch = await createScratch();
  // So that the starts are quick. It is written by a process that ends by itself.
  await using cache = await createScratch();
  const env = { NODE_COMPILE_CACHE: cache.path };
  let [responded, sent, midway] = [0, 0, 0];
  for (let kills = 0; kills <= KILLS; kills += 1) {
    await using child = spawnProxy(scratch, env);
    const { admin } = await started(child);
    const { text, body } = await admin('GET', CONFIG);
    const found = Number(/"value":"(\d+)"/.exec(text)?.[1] ?? 0);
    expect([responded, sent]).toContain(found);
    expect(body['revision']).toBe(found);
    // The bundle in the public part may be in the middle of its replacement.
    const left = await readdir(join(scratch.path, 'secret'), { recursive: true });
    expect(left.filter((name) => name.endsWith('.tmp'))).toEqual([]);
    if (sent > responded) midway += 1;
    responded = sent = found;
    if (kills === 0) {
      await stop(child);
      continue;
    }
    for (const last = sent + 1 + (kills % 3); sent < last; ) {
      sent += 1;
      const put = admin('PUT', CONFIG, rules(String(sent)));
      if (sent === last) child.kill('SIGKILL');
      // The kill may come before or after the response.
      const status = await put.then((reply) => reply.status).catch(() => 'killed');
      expect(sent === last ? [200, 'killed'] : [200]).toContain(status);
      if (status === 200) responded = sent;
    }
    await child.exited;
  }
  expect(midway).toBeGreaterThan(0);
  await using last = spawnProxy(scratch, env);
  await started(last);
  await stop(last);
  const left = await readdir(scratch.path, { recursive: true });
  expect(left.filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
