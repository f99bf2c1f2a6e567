// Where a proxy keeps its state, on machines and in containers that restrict it.
import { mkdir, readdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { prepareState, stateDirectory } from '../../src/cli/settings.ts';
import { parseConfig } from '../../src/sidecar/config.ts';
import { createScratch } from '../support/scratch.ts';
import { program, runToEnd, SpawnedProcess, spawnSallyport } from '../support/spawned-process.ts';
import { everyNth } from '../support/run-size.ts';

const isRoot = process.getuid?.() === 0;

/** As in a container whose user has neither HOME nor an entry in /etc/passwd. */
const NO_HOME = `
  import os from 'node:os';
  import { syncBuiltinESMExports } from 'node:module';
  os.homedir = () => { throw new Error('A system error occurred: uv_os_homedir returned ENOENT'); };
  syncBuiltinESMExports();
`;

describe('without a home directory', () => {
  it('a command says which directory to set', async () => {
    await using scratch = await createScratch();
    const preload = await scratch.write('no-home.mjs', NO_HOME);
    const { code, stderr } = await runToEnd(process.execPath, ['--import', preload, program, 'env']);
    const expected =
      'sallyport: this user has no home directory for the state: set --state-dir (SALLYPORT_STATE_DIR) to a writable directory\n';
    expect([code, stderr]).toEqual([2, expected]);
  });

  it('a proxy with a state directory starts', async () => {
    await using scratch = await createScratch();
    const preload = await scratch.write('no-home.mjs', NO_HOME);
    await using sallyport = await spawnSallyport({ proxyConfig: {}, preloads: [preload] });
    expect(sallyport.port).toBeGreaterThan(0);
  });
});

it('an empty HOME is none: the state is not below the current directory', () => {
  vi.stubEnv('HOME', '');
  vi.stubEnv('XDG_STATE_HOME', '');
  try {
    const state = stateDirectory({ stateDir: undefined });
    expect(state).toBe(join(userInfo().homedir, '.local', 'state', 'sallyport'));
  } finally {
    vi.unstubAllEnvs();
  }
});

describe('a state directory that cannot be written to is named, with what to do', () => {
  const HINT = 'mount a writable volume there, or set SALLYPORT_STATE_DIR to a writable directory';

  it('below a file', async () => {
    await using scratch = await createScratch();
    const state = join(await scratch.write('file', ''), 'state');
    const { code, stderr } = await runToEnd(process.execPath, [program, 'proxy', '--state-dir', state]);
    const expected = `sallyport: cannot write to ${state} (a part of the path is not a directory): ${HINT}\n`;
    expect([code, stderr]).toEqual([2, expected]);
  });

  it.runIf(process.platform === 'linux').each(['/proc/x', '/proc/x/y'])('at %s', async (state) => {
    const { code, stderr } = await runToEnd(process.execPath, [program, 'proxy', '--state-dir', state]);
    const expected = `sallyport: cannot write to ${state} (no directory can be created there): ${HINT}\n`;
    expect([code, stderr]).toEqual([2, expected]);
  });

  it.runIf(isRoot)('on a read-only file system', async () => {
    await using scratch = await createScratch();
    const script = `mount -t tmpfs -o ro none '${scratch.path}' && exec '${process.execPath}' '${program}' proxy --state-dir '${scratch.path}'`;
    const { code, stderr } = await runToEnd('unshare', ['-m', 'sh', '-c', script]);
    const expected = `sallyport: cannot write to ${scratch.path} (read-only file system): ${HINT}\n`;
    expect([code, stderr]).toEqual([2, expected]);
  });
});

it('files at the top of the state directory that the config names stay there, so that no new ones are created', async () => {
  await using scratch = await createScratch();
  const [certificate, key, token, stateKey] = await Promise.all(
    ['ca.pem', 'ca.key', 'admin-token', 'state.key'].map((name) => scratch.write(name, 'content')),
  );
  const document = {
    state_dir: scratch.path,
    ca: { certificate, key },
    admin: { token_file: token },
    state_key_file: stateKey,
  };
  const parsed = parseConfig(document, {});
  expect(parsed.ok && (await prepareState(parsed.value))).toEqual([]);
  expect((await readdir(scratch.path)).toSorted()).toEqual([
    'admin-token',
    'ca.key',
    'ca.pem',
    'public',
    'secret',
    'state.key',
  ]);
});

it.runIf(isRoot)('with a read-only root one writable directory is enough', async () => {
  await using scratch = await createScratch();
  const state = join(scratch.path, 'state');
  await mkdir(state);
  const secrets = await scratch.write('secrets', 'KEY=value-of-the-key\n');
  const options = `--listen 127.0.0.1:0 --admin-listen 'unix:${state}/admin.sock' --state-dir '${state}'`;
  const script = `mount -t tmpfs none '${state}' && mount -o remount,bind,ro / && for m in /dev/shm /tmp; do
    ! mountpoint -q $m || mount -o remount,bind,ro $m; done
    exec '${process.execPath}' '${program}' proxy ${options} --secrets-file '${secrets}'`;
  const env = { NODE_COMPILE_CACHE: '', HOME: '/nonexistent', TMPDIR: '/nonexistent' };
  await using proxy = new SpawnedProcess('unshare', ['-m', 'sh', '-c', script], { env });
  await proxy.record(({ msg }) => msg === 'ready');
  proxy.kill('SIGTERM');
  expect(await proxy.exited).toEqual({ code: 0, signal: null });
});

describe('a file that cannot be read is named with its setting:', () => {
  everyNth(
    3,
    [
      ['SALLYPORT_PROXY_CONFIG', 'proxy_config', 'ENOENT'],
      ['SALLYPORT_AUTH_TOKEN_FILE', 'auth.token_file', 'ENOENT'],
      ['SALLYPORT_SECRETS_DIR', 'secrets.directory', 'ENOENT'],
      ['SALLYPORT_SECRETS_FILE', 'secrets.file', 'ENOENT'],
      ['SALLYPORT_UPSTREAM_CA', 'upstream.ca_file', 'ENOENT'],
      ['SALLYPORT_ADMIN_TOKEN_FILE', 'admin.token_file', 'ENOTDIR'],
      ['SALLYPORT_RECORDS_FORWARD_TOKEN_FILE', 'records.forward.token_file', 'ENOENT'],
    ],
    (some, options) =>
      it.each(some)('%s', options, async (variable, setting, code) => {
        await using scratch = await createScratch();
        const file = join(await scratch.write('plain', ''), 'below');
        const missing = code === 'ENOENT' ? join(scratch.path, 'missing') : file;
        const forward = variable.startsWith('SALLYPORT_RECORDS_FORWARD_')
          ? { SALLYPORT_RECORDS_FORWARD_URL: 'http://127.0.0.1:9' }
          : {};
        const env = {
          ...forward,
          [variable]: missing,
          SALLYPORT_LISTEN: '127.0.0.1:0',
          SALLYPORT_STATE_DIR: scratch.path,
        };
        const finished = await runToEnd(process.execPath, [program, 'proxy'], { env });
        expect([finished.code, finished.stderr.replaceAll(missing, 'FILE')]).toEqual([
          2,
          expect.stringMatching(
            new RegExp(`^sallyport: ${setting.replaceAll('.', '\\.')} \\(${variable}\\): .*FILE`),
          ),
        ]);
        expect(finished.stderr).toContain(code);
      }),
  );
});
