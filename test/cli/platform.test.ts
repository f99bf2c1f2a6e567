// `sallyport platform` as a real process on a real PostgreSQL: its start and its drain, two processes on one database,
// and invalid settings.
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  createTestDatabase,
  type TestDatabase,
  type TestDatabaseOptions,
} from '../support/platform-database.ts';
import { type PlatformOptions, initPlatform, startPlatform } from '../support/platform-process.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { type Finished, program, runToEnd, type SpawnedProcess } from '../support/spawned-process.ts';
import { WireClient } from '../support/wire-client.ts';
import { connectOnce } from '../../src/platform/store/database.ts';
import { mintKey } from '../../src/platform/identity/api-key.ts';
import { everyNth } from '../support/run-size.ts';

async function scratchDirectory(): Promise<Scratch> {
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  // A database that may not run as root must be able to enter it.
  await chmod(scratch.path, 0o755);
  return scratch;
}

async function onDatabase(
  given: TestDatabaseOptions = {},
): Promise<PlatformOptions & { readonly database: TestDatabase }> {
  const database = await createTestDatabase(given);
  onTestFinished(() => database[Symbol.asyncDispose]());
  return { dataDirectory: join((await scratchDirectory()).path, 'data'), database };
}

async function start(
  options: PlatformOptions,
): Promise<{ process: SpawnedProcess; port: number; url: string }> {
  const platform = startPlatform(options);
  onTestFinished(() => platform[Symbol.asyncDispose]());
  const { port } = await platform.ready;
  return { process: platform.process, port, url: `http://127.0.0.1:${port}` };
}

function environmentOf({ dataDirectory, database }: PlatformOptions): Record<string, string> {
  return {
    SALLYPORT_PLATFORM_LISTEN: '127.0.0.1:0',
    SALLYPORT_PLATFORM_DATA_DIR: dataDirectory,
    SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: 'attached',
    ...(database && {
      DATABASE_URL: database.url,
      SALLYPORT_PLATFORM_DATABASE_OWNER_URL: database.ownerUrl,
    }),
  };
}

// Each test starts several processes, and each of those a database or a migration.
const SLOW = { timeout: 180_000 };
const key = mintKey('service').text;
const createListener = `POST /v2/listeners HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${key}\r\nContent-Type: application/json\r\n`;

describe('a platform with an embedded server', SLOW, () => {
  it('starts from nothing, creates its first key once, serves, and locks its directory', {
    tags: 'long',
  }, async () => {
    const dataDirectory = join((await scratchDirectory()).path, 'data');
    const env = environmentOf({ dataDirectory });
    const init = await runToEnd(process.execPath, [program, 'platform', 'init', '--name', 'Acme'], { env });
    expect([init.code, init.stdout]).toEqual([0, expect.stringMatching(/^sp_sk_[0-9A-Za-z]{49}\n$/)]);
    const again = await runToEnd(process.execPath, [program, 'platform', 'init'], { env });
    expect([again.code, again.stdout]).toEqual([2, '']);
    expect(again.stderr).toContain('An organization already exists');

    const { process: child, url } = await start({ dataDirectory });
    const me = await fetch(`${url}/api/v1/orgs/current`, { headers: { 'x-api-key': init.stdout.trim() } });
    expect([me.status, await me.json()]).toEqual([200, expect.objectContaining({ display_name: 'Acme' })]);
    const second = await runToEnd(process.execPath, [program, 'platform'], { env });
    expect(second.code).not.toBe(0);
    expect(second.stderr).toMatch(/DATABASE_URL|another/i);

    // A lost key can be recovered while the platform runs, and the audit log records it.
    const recovered = await runToEnd(process.execPath, [program, 'platform', 'recover'], { env });
    expect([recovered.code, recovered.stdout]).toEqual([
      0,
      expect.stringMatching(/^sp_sk_[0-9A-Za-z]{49}\n$/),
    ]);
    const log = await fetch(`${url}/api/v1/audit-logs?operations=create_service_key`, {
      headers: { 'x-api-key': recovered.stdout.trim() },
    });
    const { items } = (await log.json()) as { readonly items: readonly { readonly actor: unknown }[] };
    expect([log.status, items.length]).toEqual([200, 2]);

    // Both keys work without X-Tenant-Id, also with two workspaces: the first one is their home.
    const keys = [init.stdout.trim(), recovered.stdout.trim()];
    const [first = '', other = ''] = keys;
    const headers = { 'x-api-key': other, 'content-type': 'application/json' };
    const body = JSON.stringify({ display_name: 'Second' });
    expect((await fetch(`${url}/api/v1/workspaces`, { method: 'POST', headers, body })).ok).toBe(true);
    // With the first run, a bundle loads what no other request needs.
    const run = JSON.stringify({ id: randomUUID(), name: 'step', start_time: new Date() });
    expect((await fetch(`${url}/runs`, { method: 'POST', headers, body: run })).status).toBe(202);
    const listener = JSON.stringify({ compute_type: 'k8s', compute_id: 'prod', compute_config: {} });
    const made = await fetch(`${url}/v2/listeners`, {
      method: 'POST',
      headers: { ...headers, 'x-api-key': first },
      body: listener,
    });
    const { id } = (await made.json()) as { readonly id: string };
    const read = await fetch(`${url}/v2/listeners/${id}`, { headers: { 'x-api-key': other } });
    expect([made.status, read.status]).toEqual([201, 200]);

    // The master key of the vault can be replaced while the platform runs.
    const masterKeys = join(dataDirectory, 'vault-master.key');
    expect((await stat(masterKeys)).mode & 0o777).toBe(0o600);
    const args = [program, 'platform', 'rewrap', '--new-master-key'];
    const rewrapped = await runToEnd(process.execPath, args, { env });
    expect([rewrapped.code, rewrapped.stdout]).toEqual([0, '']);
    expect(rewrapped.stderr).toMatch(
      /data keys wrapped with master key [0-9a-f]{16}: 0\n.*is needed .* no more/,
    );
    expect((await readFile(masterKeys, 'utf8')).trim().split('\n')).toHaveLength(2);
    child.kill('SIGTERM');
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.stdout + child.stderr).not.toMatch(/sp_sk_[0-9A-Za-z]{10}/);
  });
});

describe('a recovery', SLOW, () => {
  it.each([
    ['without a database', [], /There is no database in/],
    ['with an invalid id', ['--organization', 'acme'], /--organization must be the id/],
  ])('%s is rejected, and the message says what to do', async (_, args, sentence) => {
    const dataDirectory = join((await scratchDirectory()).path, 'data');
    const env = environmentOf({ dataDirectory });
    const rejected = await runToEnd(process.execPath, [program, 'platform', 'recover', ...args], { env });
    expect([rejected.code, rejected.stdout]).toEqual([2, '']);
    expect(rejected.stderr).toMatch(sentence);
  });

  it('requires the organization when there are several, and creates nothing for an unknown one', {
    tags: ['long'],
  }, async () => {
    const options = await onDatabase();
    const { database } = options;
    const env = environmentOf(options);
    const rows = ['First', 'Second'].map((display_name) => ({
      display_name,
      plan: 'enterprise',
      config: '{}',
    }));
    const [first] = await database.owner.db
      .insertInto('organizations')
      .values(rows)
      .returning('id')
      .execute();
    const attempt = (args: readonly string[]): Promise<unknown> =>
      runToEnd(process.execPath, [program, 'platform', 'recover', ...args], { env });
    expect(await attempt([])).toMatchObject({
      code: 2,
      stdout: '',
      // Who has lost all keys knows no ids.
      stderr: expect.stringContaining(`choose one with --organization\n${first?.id} First\n`),
    });
    expect(await attempt(['--organization', randomUUID()])).toMatchObject({ code: 2, stdout: '' });
    expect(await attempt(['--organization', first?.id ?? ''])).toMatchObject({ code: 0 });
    expect(await database.owner.db.selectFrom('api_keys').select('organization_id').execute()).toEqual([
      { organization_id: first?.id },
    ]);
  });
});

describe('a platform on DATABASE_URL', SLOW, () => {
  it('serves its documents, and rejects unknown paths and methods', async () => {
    const { url } = await start(await onDatabase());
    const ask = async (path: string, method = 'GET'): Promise<readonly [number, unknown]> => {
      const response = await fetch(`${url}${path}`, { method });
      return [response.status, await response.json()];
    };
    expect(await ask('/ok')).toEqual([200, { ok: true }]);
    expect(await ask('/info')).toEqual([
      200,
      {
        version: '0.16.0',
        sallyport: expect.stringMatching(/^\d+\.\d+\.\d+/),
        git_sha: null,
        license_expiration_time: null,
        batch_ingest_config: {
          use_multipart_endpoint: true,
          ...{ scale_up_qsize_trigger: 1000, scale_up_nthreads_limit: 16, scale_down_nempty_trigger: 4 },
          ...{ size_limit: 100, size_limit_bytes: 20_971_520 },
        },
        instance_flags: { zstd_compression_enabled: true, gzip_body_enabled: true },
        customer_info: null,
      },
    ]);
    for (const prefix of ['/api', '/api/v1']) expect(await ask(`${prefix}/info`)).toEqual(await ask('/info'));
    expect(await ask('/openapi.json')).toEqual([200, expect.objectContaining({ openapi: '3.1.1' })]);
    expect(await ask('/nothing')).toEqual([404, { detail: expect.any(String), code: 'no_route' }]);
    expect(await ask('/ok', 'DELETE')).toEqual([405, { detail: expect.any(String), code: 'method' }]);
    expect(await ask('/v2/listeners')).toEqual([
      401,
      { detail: expect.any(String), code: 'unauthenticated' },
    ]);
    const page = await fetch(`${url}/docs`);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  it('shows its secrets neither in its environment nor in its log', async () => {
    const options = await onDatabase();
    await initPlatform(options, key);
    const { process: child, url } = await start({ ...options, env: { SALLYPORT_BOOTSTRAP_API_KEY: key } });
    await fetch(`${url}/v2/listeners`, { headers: { 'x-api-key': key } });
    const password = new URL(options.database.url).searchParams.get('password') ?? '';
    expect(password).not.toBe('');
    const shown = await readFile(`/proc/${child.pid}/environ`, 'utf8');
    for (const secret of [key, password]) {
      expect(shown).not.toContain(secret);
      expect(child.stdout + child.stderr).not.toContain(secret);
    }
  });

  it('accepts an existing key on every start, and prints none', async () => {
    const options = await onDatabase();
    const env = { ...environmentOf(options), SALLYPORT_BOOTSTRAP_API_KEY: key };
    for (const message of ['organization', 'nothing was changed']) {
      const { code, stdout, stderr } = await runToEnd(process.execPath, [program, 'platform', 'init'], {
        env,
      });
      expect([code, stdout]).toEqual([0, '']);
      expect(stderr).toContain(message);
      expect(stderr).not.toContain(key);
    }
    const bad = { ...env, SALLYPORT_BOOTSTRAP_API_KEY: 'hush' };
    const rejected = await runToEnd(process.execPath, [program, 'platform', 'init'], { env: bad });
    expect([rejected.code, rejected.stderr]).toEqual([2, expect.not.stringContaining('hush')]);
  });

  it('says with `init` what runs sandboxes here, and succeeds where they cannot be prepared', {
    tags: ['long'],
  }, async () => {
    const options = await onDatabase();
    const env = {
      ...environmentOf(options),
      SALLYPORT_BOOTSTRAP_API_KEY: key,
      SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: 'auto',
    };
    const init = (): Promise<Finished> => runToEnd(process.execPath, [program, 'platform', 'init'], { env });
    // Where this machine can isolate boxes, this is a file in the place of the directory.
    const place = join(options.dataDirectory, 'box-host');
    await mkdir(options.dataDirectory);
    await writeFile(place, '');
    const refused = await init();
    expect([refused.code, refused.stdout]).toEqual([0, '']);
    expect(refused.stderr).toMatch(/prepared with the first one|Sandboxes will be attached/);
    await rm(place);
    const made = await init();
    expect([made.code, made.stdout]).toEqual([0, '']);
    expect(made.stderr).toMatch(/isolated by bubblewrap [0-9.]+, and their base is made|will be attached/);
    const isMade = existsSync(join(place, 'bubblewrap', 'snapshots', 'base'));
    expect(isMade).toBe(made.stderr.includes('base is made'));
    const again = await init();
    expect(again.stderr.includes('Sandboxes will be')).toBe(!isMade);
  });

  it('shares its database with a second platform', { tags: ['long'] }, async () => {
    const options = await onDatabase();
    await initPlatform(options, key);
    const [one, other] = await Promise.all([start(options), start(options)]);
    const body = JSON.stringify({ compute_type: 'k8s', compute_id: 'a', compute_config: {} });
    const headers = { 'x-api-key': key, 'content-type': 'application/json' };
    const made = await fetch(`${one.url}/v2/listeners`, { method: 'POST', headers, body });
    expect(made.status).toBe(201);
    const { id } = (await made.json()) as { readonly id: string };
    expect((await fetch(`${other.url}/v2/listeners/${id}`, { headers })).status).toBe(200);
  });

  it('finishes a running request when it is stopped, responds 503 to others, and exits with 0', async () => {
    const options = await onDatabase();
    await initPlatform(options, key);
    const { process: child, port } = await start(options);
    await using slow = await WireClient.connect(port);
    await using probe = await WireClient.connect(port);
    const body = JSON.stringify({ compute_type: 'k8s', compute_id: 'slow', compute_config: {} });
    await slow.send(`${createListener}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`);
    expect((await slow.readHead()).status).toBe(100);
    await probe.send('GET /ok HTTP/1.1\r\nHost: a\r\n\r\n');
    expect((await probe.readResponse()).head.status).toBe(200);

    child.kill('SIGTERM');
    await child.record(({ msg }) => msg === 'draining');
    await probe.send('GET /ok HTTP/1.1\r\nHost: a\r\n\r\n');
    const { head: last } = await probe.readResponse();
    expect(last.status).toBe(503);
    expect(last.headers).toContainEqual(['Connection', 'close']);
    await slow.send(body);
    expect((await slow.readResponse()).head.status).toBe(201);
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });

  it('exits in time when its start hangs', async () => {
    const { database, ...options } = await onDatabase({ isMigrated: false });
    await connectOnce(database.ownerConnection, async (other) => {
      // As another process holds it while it migrates the schema.
      await other.query('select pg_advisory_lock(5271009001)');
      const env = { SALLYPORT_PLATFORM_LIMITS_DRAIN_MS: '200' };
      await using platform = startPlatform({ ...options, database, env });
      const waiting = `select from pg_locks where locktype = 'advisory' and not granted and database =
        (select oid from pg_database where datname = current_database())`;
      await expect.poll(async () => (await other.query(waiting)).rowCount, { timeout: 60_000 }).toBe(1);
      platform.process.kill('SIGTERM');
      expect(await platform.process.exited).toEqual({ code: 143, signal: null });
      expect(platform.process.records.map(({ msg }) => msg)).toContainEqual(
        expect.stringContaining('shutdown timed out'),
      );
    });
  });

  it('does not wait for a request after a second signal', { tags: ['long'] }, async () => {
    const options = await onDatabase();
    await initPlatform(options, key);
    const { process: child, port } = await start(options);
    await using slow = await WireClient.connect(port);
    await slow.send(`${createListener}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`);
    expect((await slow.readHead()).status).toBe(100);
    child.kill('SIGTERM');
    await child.record(({ msg }) => msg === 'draining');
    child.kill('SIGTERM');
    expect(await child.exited).toEqual({ code: 143, signal: null });
  });
});

describe('invalid settings', () => {
  it('are named without their value, and the exit code is 2', async () => {
    const env = { SALLYPORT_PLATFORM_LISTEN: 'hush', DATABASE_URL: 'hush' };
    const { code, stderr } = await runToEnd(process.execPath, [program, 'platform'], { env });
    expect(code).toBe(2);
    expect(stderr).toContain('SALLYPORT_PLATFORM_LISTEN: ');
    expect(stderr).toContain('DATABASE_URL: ');
    expect(stderr).not.toContain('hush');
  });

  everyNth(
    3,
    [
      [
        'an unknown command',
        ['serf'],
        'unexpected argument serf. Usage: sallyport platform [OPTIONS] [serve|',
      ],
      [
        'an argument too many',
        ['init', 'acme'],
        'unexpected argument acme. Usage: sallyport platform [OPTIONS]',
      ],
      [
        'a name that the API rejects',
        ['init', '--name', 'x'.repeat(129), '--data-dir', '/nowhere'],
        'The name must have 1 to 128 characters',
      ],
      [
        'an option of another command',
        ['recover', '--name', 'Acme'],
        '--name is no option of recover: it belongs to init and organization',
      ],
      [
        'an option of another command, without a command',
        ['--new-master-key'],
        '--new-master-key is no option of serve: it belongs to rewrap',
      ],
    ],
    (some, options) =>
      it.each(some)('include %s, which is named', options, async (_, args, sentence) => {
        const { code, stderr } = await runToEnd(process.execPath, [program, 'platform', ...args]);
        expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
      }),
  );

  it('name the variable of a database that cannot be reached, and of one that is not there', async () => {
    const { database, dataDirectory } = await onDatabase();
    const closed = 'postgresql://a@127.0.0.1:1/a';
    const absent = database.url.replace(/\/[^/?]+(?=\?|$)/, '/absent');
    const attempt = (url: string): Promise<unknown> =>
      runToEnd(process.execPath, [program, 'platform', 'init'], {
        env: { SALLYPORT_PLATFORM_DATA_DIR: dataDirectory, DATABASE_URL: url },
      });
    expect(await attempt(closed)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        'The database that DATABASE_URL names (127.0.0.1:1) cannot be reached: connect ECONNREFUSED 127.0.0.1:1',
      ),
    });
    expect(await attempt(absent)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        'DATABASE_URL: the server refuses the connection: database "absent" does not exist',
      ),
    });
  });

  it.each([
    ['platform', 'recover'],
    ['audit', 'verify'],
  ])('with a misspelt name are reported by %s %s too', async (...args) => {
    const dataDirectory = join((await scratchDirectory()).path, 'data');
    const env = { ...environmentOf({ dataDirectory }), SALLYPORT_PLATFORM_DATADIR: '/nowhere' };
    const { stderr } = await runToEnd(process.execPath, [program, ...args], { env });
    expect(stderr).toContain(
      'SALLYPORT_PLATFORM_DATADIR is not a setting: did you mean SALLYPORT_PLATFORM_DATA_DIR?',
    );
  });

  it('cause a warning for a misspelt name, and for a listener that other machines can reach', async () => {
    const options = await onDatabase();
    const { process: child } = await start({
      ...options,
      env: { SALLYPORT_PLATFORM_LISTEN: '0.0.0.0:0', SALLYPORT_PLATFORM_LOG_LEVLE: 'warn' },
    });
    const warnings = child.records.filter(({ level }) => level === 'warn').map(({ msg }) => msg);
    expect(warnings).toEqual([
      expect.stringContaining('did you mean SALLYPORT_PLATFORM_LOG_LEVEL?'),
      expect.stringContaining('0.0.0.0:0 is reachable from other machines'),
      expect.stringContaining('there is no organization'),
    ]);
  });
});
