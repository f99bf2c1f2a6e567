// `sallyport env` as a shell meets it.
import { mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { agentPreload } from '../../src/cli/client/node-preload.ts';
import { headerValues } from '../support/message-reader.ts';
import { createOrigin } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { type Finished, program, runToEnd, spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { createTestSidecar } from '../support/test-sidecar.ts';
import { everyNth } from '../support/run-size.ts';

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
const [ca, root, other] = ['Proxy', 'Root', 'Other'].map((name) => createTestAuthority(name).certificatePem);

function printEnv(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  return runToEnd(process.execPath, [program, 'env', ...args], { env });
}

async function createState(): Promise<Scratch> {
  const scratch = await createScratch();
  await mkdir(join(scratch.path, 'public'));
  await scratch.write('public/ca.pem', ca);
  await scratch.write('public/ca-bundle.pem', `${ca}${root}`);
  return scratch;
}

/** What the lines mean to a shell. */
async function evaluate(lines: string): Promise<Record<string, string>> {
  const show = `${process.execPath} -p 'JSON.stringify(process.env)'`;
  const { stdout } = await runToEnd('sh', ['-c', `eval "$LINES"; unset LINES; ${show}`], {
    env: { LINES: lines },
  });
  return JSON.parse(stdout);
}

describe('env', () => {
  it('makes the programs of a shell use a running proxy', async () => {
    const authority = createTestAuthority();
    await using origin = await createOrigin({ tls: { authority, names: ['api.test'] } });
    await using sallyport = await spawnSallyport({
      proxyConfig: { rules: [{ match_hosts: ['api.test'], headers }] },
      upstreamCaPem: authority.certificatePem,
    });
    // The proxy publishes its bundle after it is ready.
    const published = dirname(sallyport.caFile);
    await expect.poll(() => readdir(published)).toContain('ca-bundle.pem');
    const flags = `--state-dir ${dirname(published)} --listen 127.0.0.1:${sallyport.port}`;
    const script = `eval "$(${process.execPath} ${program} env ${flags})" && curl -sSf https://api.test:${origin.port}/`;
    const { code, stderr } = await runToEnd('sh', ['-c', script]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(headerValues(await origin.request(0), 'x-key')).toEqual(['injected']);
  });

  it('prints absolute paths for a relative state directory', async () => {
    await using state = await createState();
    const { stdout } = await printEnv(['--state-dir', relative(process.cwd(), state.path)]);
    const { SSL_CERT_FILE: file = '' } = await evaluate(stdout);
    expect([isAbsolute(file), dirname(dirname(file))]).toEqual([true, state.path]);
  });

  it('prints values that a shell cannot evaluate as commands', async () => {
    await using state = await createState();
    const nasty = `it's "$(touch ${state.path}/evil)" \`id\` \\ $HOME\nline`;
    const rules = await state.write('rules.json', {
      rules: [{ match_hosts: ['api.test'], headers, env_vars: { API_KEY: nasty, PATH: '/evil' } }],
    });
    const { code, stdout, stderr } = await printEnv(['--state-dir', state.path, '--proxy-config', rules]);
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^sallyport: env_vars\.PATH .*\n$/)]);
    const env = await evaluate(stdout);
    expect(env).toMatchObject({ API_KEY: nasty, HTTPS_PROXY: 'http://127.0.0.1:3128' });
    expect(env['PATH']).toBe(process.env['PATH']);
    await expect(stat(join(state.path, 'evil'))).rejects.toThrow('ENOENT');
  });

  it('prints the same to a shell that has evaluated it before', async () => {
    await using state = await createState();
    const token = await state.write('token', '0123456789abcdef');
    const args = ['--state-dir', state.path];
    const first = await evaluate((await printEnv(args, { SALLYPORT_AUTH_TOKEN_FILE: token })).stdout);
    expect(first['HTTPS_PROXY']).toBe('http://sallyport:0123456789abcdef@127.0.0.1:3128');
    expect(first['GIT_CONFIG_COUNT']).toBe('1');
    const again = await printEnv(args, { ...first, SALLYPORT_AUTH_TOKEN_FILE: token });
    expect({ ...first, ...(await evaluate(again.stdout)) }).toEqual(first);
  });

  it('of a proxy that runs reads no file of its user, and writes to the given directory only', async () => {
    await using proxy = await createTestSidecar();
    await using scratch = await createScratch();
    const token = await scratch.write('token', '0123456789abcdef');
    const files = join(scratch.path, 'files');
    const url = `http://127.0.0.1:${proxy.port}`;
    const given = ['--proxy', url, '--write', files, '--sandbox', 'box', '--token-file', token];
    const { code, stdout, stderr } = await printEnv([
      ...given,
      '--format',
      'json',
      '--state-dir',
      '/nonexistent',
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const env = JSON.parse(stdout);
    expect(env.HTTPS_PROXY).toBe(`http://box:0123456789abcdef@127.0.0.1:${proxy.port}`);
    expect(dirname(env.SSL_CERT_FILE)).toBe(files);
    expect(await readFile(env.SSL_CERT_FILE, 'utf8')).toContain(proxy.caPem.trim());
    // The token of the operator's config is not the client's.
    const other = await printEnv(['--proxy', url, '--write', files], { SALLYPORT_AUTH_TOKEN_FILE: token });
    expect(other.stdout).toContain(`export HTTPS_PROXY='${url}'\n`);
  });

  it('asks the proxy directly in a shell whose programs use a proxy', async () => {
    await using proxy = await createTestSidecar();
    await using scratch = await createScratch();
    const preload = await scratch.write('agent-preload-0123456789abcdef.cjs', agentPreload);
    const given = ['--proxy', `http://127.0.0.1:${proxy.port}`, '--write', join(scratch.path, 'files')];
    const env = {
      HTTP_PROXY: 'http://127.0.0.1:9',
      NODE_USE_ENV_PROXY: '1',
      NODE_OPTIONS: `--require=${preload}`,
    };
    expect(await printEnv(given, env)).toMatchObject({ code: 0, stderr: '' });
  });

  it('writes nothing, and names the files that the proxy published', async () => {
    await using state = await createState();
    const before = await readdir(state.path, { recursive: true });
    const { stdout, stderr } = await printEnv(['--state-dir', state.path]);
    const env = await evaluate(stdout);
    expect(env).toMatchObject({
      SSL_CERT_FILE: join(state.path, 'public', 'ca-bundle.pem'),
      NODE_EXTRA_CA_CERTS: join(state.path, 'public', 'ca.pem'),
    });
    expect(stderr).toBe('');
    expect(await readdir(state.path, { recursive: true })).toEqual(before);
  });

  it('in a rotation names files with both CAs, with and without --write', async () => {
    await using state = await createState();
    await state.write('public/ca.pem.next', other);
    await state.write('public/ca-bundle.pem', `${ca}${other}${root}`);
    const bundle = join(state.path, 'public', 'ca-bundle.pem');
    const published = await printEnv(['--state-dir', state.path]);
    expect([await evaluate(published.stdout), published.stderr]).toEqual([
      expect.objectContaining({ SSL_CERT_FILE: bundle, NODE_EXTRA_CA_CERTS: bundle }),
      '',
    ]);
    const args = ['--state-dir', state.path, '--write', join(state.path, 'files')];
    const written = await evaluate((await printEnv(args)).stdout);
    for (const name of ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS']) {
      const text = await readFile(written[name] ?? '', 'utf8');
      expect([text.includes(ca ?? ''), text.includes(other ?? '')]).toEqual([true, true]);
    }
  });

  it('warns of a bundle that the proxy has written before the rotation', async () => {
    await using state = await createState();
    await state.write('public/ca.pem.next', other);
    const { code, stdout, stderr } = await printEnv(['--state-dir', state.path]);
    expect((await evaluate(stdout))['NODE_EXTRA_CA_CERTS']).toBe(join(state.path, 'public', 'ca.pem'));
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(
        /ca-bundle\.pem lacks the next CA .*: send SIGHUP to the proxy, then run this again/,
      ),
    ]);
  });

  it.runIf(process.platform === 'linux')('ends where --write is no place for a directory', async () => {
    await using state = await createState();
    const { code, stderr } = await printEnv(['--state-dir', state.path, '--write', '/proc/x']);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(
        'sallyport: cannot write to /proc/x (no directory can be created there): set --write',
      ),
    ]);
  });

  it('reads nothing of the secret part', async () => {
    await using state = await createState();
    // Root reads a directory of any mode, but no link that leads to itself.
    await symlink('secret', join(state.path, 'secret'));
    expect(await printEnv(['--state-dir', state.path])).toMatchObject({ code: 0, stderr: '' });
  });

  it('warns of certificates of the caller that the bundle leaves out, and --write includes them', async () => {
    await using state = await createState();
    const caller = {
      SSL_CERT_FILE: await state.write('other.pem', other),
      PIP_CERT: await state.write('root.pem', root),
    };
    const args = ['--state-dir', state.path];
    expect((await printEnv(args, caller)).stderr).toBe(
      `sallyport: SSL_CERT_FILE: ${state.path}/other.pem has certificates that are left out: give --write DIR to include them\n`,
    );
    const directory = join(state.path, 'files');
    const { stdout, stderr } = await printEnv([...args, '--write', directory], caller);
    const { SSL_CERT_FILE: file = '', NODE_EXTRA_CA_CERTS: extra = '' } = await evaluate(stdout);
    expect([stderr, dirname(file), dirname(extra)]).toEqual(['', directory, directory]);
    expect(await readFile(file, 'utf8')).toContain(other);
  });

  it('prints no variable of a program that --without names, and those with files only with --write', async () => {
    await using state = await createState();
    const args = ['--state-dir', state.path, '--without', 'java,node,npm'];
    const published = await printEnv(args);
    expect(published.stdout).not.toMatch(/JAVA_TOOL_OPTIONS|NODE_OPTIONS|npm_config_cafile|PHP_INI_SCAN_DIR/);
    expect(published.stdout).toContain('export YARN_HTTPS_CA_FILE_PATH=');
    const directory = join(state.path, 'files');
    const { stdout } = await printEnv([...args, '--write', directory]);
    expect(stdout).not.toMatch(/JAVA_TOOL_OPTIONS|NODE_OPTIONS|npm_config_cafile/);
    expect(stdout).toContain(`export PHP_INI_SCAN_DIR=':${directory}/php-ca-bundle-`);
    expect((await stat(directory)).mode & 0o777).toBe(0o755);
  });

  it.each([
    ['0.0.0.0:3128', 'http://127.0.0.1:3128'],
    ['[::]:3128', 'http://[::1]:3128'],
    ['[::1]:3128', 'http://[::1]:3128'],
    ['10.1.2.3:8080', 'http://10.1.2.3:8080'],
  ])('for a proxy that listens on %s prints %s', async (listen, url) => {
    await using state = await createState();
    const config = await state.write('config.json', { listen, auth: 'none', state_dir: state.path });
    expect((await printEnv(['--config', config])).stdout).toContain(`export HTTPS_PROXY='${url}'\n`);
  });

  const rows: readonly (readonly [string, (state: Scratch) => Promise<readonly string[]>, RegExp])[] = [
    ['a port that may be any', async () => ['--listen', '127.0.0.1:0'], /port is 0.*--listen/],
    [
      'a CA that is not there',
      async (state) => ['--state-dir', join(state.path, 'none')],
      /none\/public\/ca\.pem cannot be read \(ENOENT\).*sallyport proxy/,
    ],
    [
      'a bundle of another CA',
      async (state) => {
        await state.write('public/ca-bundle.pem', other);
        return [];
      },
      /public\/ca-bundle\.pem is missing, cannot be read or is of another CA: start the proxy again, or give --write DIR/,
    ],
    [
      'invalid rules',
      async (state) => ['--proxy-config', await state.write('bad.json', { rules: [{}] })],
      /bad\.json: rules\[0\]/,
    ],
    ['an unknown program', async () => ['--without', 'jvm'], /--without: jvm/],
    ['an invalid config', async () => ['--listen', 'nowhere'], /SALLYPORT_LISTEN/],
    ['another format', async () => ['--format', 'fish'], /--format must be one of sh, dotenv, json, docker/],
    ['a proxy but no directory', async () => ['--proxy', 'http://127.0.0.1:1'], /--write DIR/],
    ['a sandbox without its token', async () => ['--sandbox', 'box'], /--token-file FILE/],
    ['an id that is none', async () => ['--sandbox', 'No:Id'], /--sandbox must be the id/],
    [
      'a short token',
      async (state) => ['--token-file', await state.write('short', 'short')],
      /short: the proxy token must have at least 16 characters/,
    ],
    [
      'a proxy that does not run',
      async (state) => ['--proxy', 'http://127.0.0.1:1', '--write', state.path],
      /127\.0\.0\.1:1\/ca\.pem cannot be reached/,
    ],
    [
      'a directory that cannot be written to',
      async (state) => ['--write', join(await state.write('file', ''), 'below')],
      /cannot write to \S+file\/below \(a part of the path is not a directory\): set --write/,
    ],
    [
      'a file of other content in the directory',
      async (state) => {
        const { stdout } = await printEnv(['--state-dir', state.path, '--write', state.path]);
        const [, file = ''] = /SSL_CERT_FILE='([^']+)'/.exec(stdout) ?? [];
        await writeFile(file, 'other');
        return ['--write', state.path];
      },
      /has other content than Sallyport wrote/,
    ],
    ['a command', async () => ['--', 'curl'], /curl/],
  ];
  everyNth(3, rows, (some, options) =>
    it.each(some)(
      'for %s prints nothing to evaluate, and ends with code 2',
      options,
      async (_, args, says) => {
        await using state = await createState();
        const given = await args(state);
        const stateDir = given.includes('--state-dir') ? [] : ['--state-dir', state.path];
        const { code, stdout, stderr } = await printEnv([...stateDir, ...given]);
        expect([code, stdout]).toEqual([2, '']);
        expect(stderr).toMatch(says);
      },
    ),
  );
});
