// `sallyport env` as a shell meets it.
import { stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { headerValues } from '../support/message-reader.ts';
import { createOrigin } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { type Finished, launcher, runToEnd, spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
const ca = createTestAuthority('Proxy').certificatePem;

function printEnv(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  return runToEnd(process.execPath, [launcher, 'env', ...args], { env });
}

async function createState(): Promise<Scratch> {
  const scratch = await createScratch();
  await scratch.write('ca.pem', ca);
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
    const flags = `--state-dir ${dirname(sallyport.caFile)} --listen 127.0.0.1:${sallyport.port}`;
    const script = `eval "$(${process.execPath} ${launcher} env ${flags})" && curl -sSf https://api.test:${origin.port}/`;
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

  it('writes the files to a directory of the user that stays', async () => {
    await using state = await createState();
    const env = await evaluate((await printEnv(['--state-dir', state.path])).stdout);
    const directory = join(state.path, 'client');
    expect(dirname(env['SSL_CERT_FILE'] ?? '')).toBe(directory);
    expect(dirname(env['NODE_EXTRA_CA_CERTS'] ?? '')).toBe(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
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
      /none\/ca\.pem cannot be read \(ENOENT\).*sallyport proxy/,
    ],
    [
      'invalid rules',
      async (state) => ['--proxy-config', await state.write('bad.json', { rules: [{}] })],
      /bad\.json: rules\[0\]/,
    ],
    ['an invalid config', async () => ['--listen', 'nowhere'], /SALLYPORT_LISTEN/],
    ['a command', async () => ['--', 'curl'], /curl/],
  ];
  it.each(rows)('for %s prints nothing to evaluate, and ends with code 2', async (_, args, says) => {
    await using state = await createState();
    const given = await args(state);
    const stateDir = given.includes('--state-dir') ? [] : ['--state-dir', state.path];
    const { code, stdout, stderr } = await printEnv([...stateDir, ...given]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(says);
  });
});
