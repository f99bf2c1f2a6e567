// The script as shells run it, with a proxy whose configuration is hostile.
import { existsSync } from 'node:fs';
import { chown, lstat, mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { runToEnd, type Finished } from '../../support/spawned-process.ts';
import { createTestSidecar, type TestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';

const shells = ['sh', 'dash', 'bash'].filter((shell) =>
  ['/bin', '/usr/bin'].some((folder) => existsSync(join(folder, shell))),
);
const nasty = `it's "$(touch evil)" \`touch evil\` \\ $HOME\nline; touch evil`;
const headers = [{ name: 'X-Key', type: 'plaintext', value: 'k' }];
const rule = {
  name: `'; touch evil; '`,
  match_hosts: ['api.test'],
  headers,
  env_vars: {
    API_KEY: nasty,
    QUOTE: `'`,
    HTTPS_PROXY: 'http://evil.test',
    no_proxy: '*',
    SSL_CERT_FILE: '/evil',
    PATH: '/evil',
    // Bash evaluates what is assigned to these as arithmetic, command substitutions included.
    ...Object.fromEntries(
      ['HISTCMD', 'OPTIND', 'RANDOM', 'SRANDOM'].map((name) => [name, 'a[$(touch evil)]']),
    ),
    // A shell ends at an assignment to these.
    UID: 'x',
    PPID: 'x',
    BASH_VERSINFO: 'x',
  },
};

/** The program itself: what PATH names may be a script of a version manager. */
async function findProgram(name: string): Promise<string> {
  if (name === 'node') return process.execPath;
  const script = name === 'python3' ? `python3 -c 'import sys; print(sys.executable)'` : `command -v ${name}`;
  return (await runToEnd('sh', ['-c', script])).stdout.trim();
}

describe('the script of /env', () => {
  let proxy: TestSidecar;
  let scratch: Scratch;
  // One for each test: together the tests would exceed what one client may request in a second.
  beforeEach(async () => {
    scratch = await createScratch();
    proxy = await createTestSidecar({ proxyConfig: { rules: [rule] } });
  });
  afterEach(async () => {
    await proxy[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  });

  /** Evaluates the script in a directory of its own and prints the environment. */
  async function evaluate(shell: string, folder: string, prepare?: string): Promise<Finished> {
    const url = `http://127.0.0.1:${proxy.port}`;
    const fetch = `script="$(http_proxy=${url} NO_PROXY='' curl -fsS http://sallyport.internal/env)"`;
    const show = `${process.execPath} -p 'JSON.stringify(process.env)'`;
    const lines = [`cd ${folder}`, prepare ?? ':', fetch, 'eval "$script"', `unset script; ${show}`];
    // bash takes a socket as its input for a remote shell, and reads its settings.
    const norc = shell === 'bash' ? ['--norc'] : [];
    return runToEnd(shell, [...norc, '-eu', '-c', lines.join('\n')], {
      env: { HTTPS_PROXY: url, XDG_RUNTIME_DIR: folder, NO_PROXY: '*' },
    });
  }

  it.each(shells)('under %s exports the bundle and evaluates no value', async (shell) => {
    const folder = join(scratch.path, shell);
    await mkdir(folder);
    const { code, stdout, stderr } = await evaluate(shell, folder);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const env = JSON.parse(stdout);
    expect(env).toMatchObject({
      API_KEY: nasty,
      QUOTE: `'`,
      HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`,
      NO_PROXY: '*',
      NODE_USE_ENV_PROXY: '1',
      NODE_EXTRA_CA_CERTS: env.SSL_CERT_FILE,
    });
    expect([env['no_proxy'], env['sallyport_ca'], env['PATH'] === '/evil']).toEqual([
      undefined,
      undefined,
      false,
    ]);
    const [file, ...others] = await readdir(folder);
    expect([file, others]).toEqual([expect.stringMatching(/^sallyport-[0-9a-f]{64}\.pem$/), []]);
    expect(env.SSL_CERT_FILE).toBe(join(folder, file ?? ''));
    expect(await readFile(env.SSL_CERT_FILE, 'utf8')).toContain(proxy.caPem.trim());
    expect((await lstat(env.SSL_CERT_FILE)).mode & 0o777).toBe(0o644);
  });

  it.each(['curl', 'wget', 'python3', 'node'])(
    'needs no other program than %s to fetch the bundle',
    async (program) => {
      const folder = join(scratch.path, program);
      const path = join(scratch.path, 'bin');
      await mkdir(folder);
      await mkdir(path);
      for (const name of ['mktemp', 'chmod', 'mv', 'rm', program])
        await writeFile(join(path, name), `#!/bin/sh\nexec ${await findProgram(name)} "$@"\n`, {
          mode: 0o755,
        });
      await using client = await WireClient.connect(proxy.port);
      await client.send('GET http://sallyport.internal/env HTTP/1.1\r\nHost: sallyport.internal\r\n\r\n');
      const { text: script } = await client.readResponse();
      const lines = `PATH=${path}\n${script}\nprintf %s "$SSL_CERT_FILE"`;
      const { code, stdout, stderr } = await runToEnd('sh', ['-eu', '-c', lines], {
        env: { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`, XDG_RUNTIME_DIR: folder, NO_PROXY: '*' },
      });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(dirname(stdout)).toBe(folder);
      expect(await readFile(stdout, 'utf8')).toContain(proxy.caPem.trim());
    },
  );

  it.each(['link', 'link to a directory', 'directory'])('follows and fills no %s of others', async (kind) => {
    const folder = join(scratch.path, 'others');
    const target = join(folder, 'target');
    await mkdir(target, { recursive: true });
    await writeFile(join(target, 'file'), 'theirs');
    const fingerprint = proxy.sidecar.fingerprint.replaceAll(':', '').toLowerCase();
    const file = join(folder, `sallyport-${fingerprint}.pem`);
    if (kind === 'directory') await mkdir(file);
    else await symlink(kind === 'link' ? join(target, 'file') : target, file);
    const { code, stdout, stderr } = await evaluate('sh', folder);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { SSL_CERT_FILE: used } = JSON.parse(stdout);
    expect((await lstat(used)).isFile()).toBe(true);
    expect(await readFile(used, 'utf8')).toContain(proxy.caPem.trim());
    // A name that is taken for good is not used.
    expect(used === file).toBe(kind === 'link');
    expect(await readdir(target)).toEqual(['file']);
    expect(await readFile(join(target, 'file'), 'utf8')).toBe('theirs');
    if (kind === 'directory') expect(await readdir(file)).toEqual([]);
  });

  it.each([
    ['that belongs to another user', '/proc'],
    ['that does not exist', '/nonexistent'],
    ['that is relative', '.'],
  ])('an XDG_RUNTIME_DIR %s is skipped', async (_, directory) => {
    const folder = join(scratch.path, 'skipped');
    await mkdir(folder);
    const set = `export XDG_RUNTIME_DIR=${directory} TMPDIR=${folder}`;
    const { code, stdout, stderr } = await evaluate('sh', folder, set);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(dirname(JSON.parse(stdout).SSL_CERT_FILE)).toBe(folder);
  });

  it.runIf(process.getuid?.() === 0)('root does not use the directory of another user', async () => {
    const [folder, theirs] = [join(scratch.path, 'ours'), join(scratch.path, 'theirs')];
    for (const directory of [folder, theirs]) await mkdir(directory);
    await chown(theirs, 4711, 4711);
    const set = `export XDG_RUNTIME_DIR=${theirs} TMPDIR=${folder}`;
    const { code, stdout, stderr } = await evaluate('sh', folder, set);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(dirname(JSON.parse(stdout).SSL_CERT_FILE)).toBe(folder);
    expect(await readdir(theirs)).toEqual([]);
  });

  it('fails, exports nothing and leaves nothing if the bundle cannot be fetched', async () => {
    const folder = join(scratch.path, 'refused');
    await mkdir(folder);
    const { code, stdout, stderr } = await evaluate('sh', folder, 'export http_proxy=http://127.0.0.1:1');
    expect([code === 0, stdout]).toEqual([false, '']);
    expect(stderr).toMatch(/^sallyport: the CA bundle could not be stored/m);
    expect(await readdir(folder)).toEqual([]);
  });

  it('says what is missing if no proxy is set, and exports nothing', async () => {
    const folder = join(scratch.path, 'none');
    await mkdir(folder);
    const { code, stdout, stderr } = await evaluate('sh', folder, 'unset HTTPS_PROXY');
    expect([code === 0, stdout]).toEqual([false, '']);
    expect(stderr).toMatch(/is http_proxy set/);
    expect(await readdir(folder)).toEqual([]);
  });
});
