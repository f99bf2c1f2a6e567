// Starts the real command with secrets given in every way, and looks where the system shows a process to others: its
// environment, its arguments, its files, its output.
import { chmod, cp, mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { refuseRuntimeSwitches } from '../../../src/cli/process/runtime-switches.ts';
import { loadAdminToken } from '../../../src/sidecar/access-tokens.ts';
import { SealedStateStore } from '../../../src/sidecar/state/state-store.ts';
import { loadOrCreateCertificateAuthority } from '../../../src/tls/certificate-authority.ts';
import { findLeaks } from '../../e2e/canary-search.ts';
import { textCanary } from '../../e2e/canary-values.ts';
import { createAdminClient } from '../../support/admin-client.ts';
import { type Scratch, createScratch } from '../../support/scratch.ts';
import { SpawnedProcess, program } from '../../support/spawned-process.ts';
import type { StartExpectation, StartScript } from './leak-script.ts';

const values = {
  SECRET: 'canary-start-secret-e4da3b7fbbce2345',
  TOKEN: 'canary-start-token-1679091c5a880faf',
  KEY: Buffer.from('canary-start-key-of-32-bytes-0af').toString('base64'),
} as const;
const canaries = [
  ...Object.entries(values).map(([name, value]) => textCanary(name, value)),
  textCanary('key', Buffer.from(values.KEY, 'base64').toString()),
];

export type StartScene = AsyncDisposable & {
  play(script: StartScript, expected: StartExpectation): Promise<readonly string[]>;
};

const LISTEN = { SALLYPORT_LISTEN: '127.0.0.1:0', SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0' };
const secretsDir = 'secrets';

export async function createStartScene(): Promise<StartScene> {
  const earlier = await createScratch();
  await using first = spawn(earlier.path, {}, undefined);
  const ready = await first.record(({ msg }) => msg === 'ready');
  const token = await readFile(join(earlier.path, 'secret', 'admin-token'), 'utf8');
  const admin = createAdminClient(String(ready['admin']), token.trim());
  const { status } = await admin('PUT', '/v1/workspace_secrets', { KEPT: values.SECRET });
  if (status !== 200) throw new Error('nothing was kept');
  first.kill('SIGTERM');
  await first.exited;
  return {
    play: (script, expected) => play(script, expected, earlier),
    [Symbol.asyncDispose]: () => earlier[Symbol.asyncDispose](),
  };
}

function spawn(
  state: string,
  env: Readonly<Record<string, string>>,
  umask: string | undefined,
): SpawnedProcess {
  const whole = { ...LISTEN, SALLYPORT_STATE_DIR: state, SALLYPORT_SECRET_VALUE: values.SECRET, ...env };
  // A shell drops variables whose names are none, so only who needs one gets one.
  if (umask === undefined) return new SpawnedProcess(process.execPath, [program, 'proxy'], { env: whole });
  const command = `umask ${umask}; exec "$@"`;
  return new SpawnedProcess('/bin/sh', ['-c', command, 'sh', process.execPath, program, 'proxy'], {
    env: whole,
  });
}

async function play(
  script: StartScript,
  expected: StartExpectation,
  earlier: Scratch,
): Promise<readonly string[]> {
  await using scratch = await createScratch();
  const directory = join(scratch.path, 'state');
  await prepare(directory, script, earlier);
  if (isJudgedInside(script, expected)) return await judgeInside(directory, script, expected);
  await using child = spawn(directory, filled(script.env ?? {}, directory), script.umask);
  const found: string[] = [];
  if (expected.refused === undefined) found.push(...(await look(child, directory, script, expected)));
  // A start that was not rejected shows in its exit code.
  else
    void child
      .record(({ msg }) => msg === 'ready')
      .then(
        () => child.kill('SIGTERM'),
        () => undefined,
      );
  const { code } = await child.exited;
  const said = child.stdout + child.stderr;
  if (code !== (expected.refused === undefined ? 0 : 2)) found.push(`exit code ${code}: ${said}`);
  for (const part of [expected.refused, expected.warns])
    if (part !== undefined && !said.includes(part)) found.push(`no ${part} in ${said}`);
  if (script.signal === 'SIGUSR1' && /Debugger listening/.test(said)) found.push('a debugger is open');
  return [...found, ...findLeaks('output', Buffer.from(said), canaries), ...(await leaksIn(directory))];
}

/** A start costs half a second: what is refused for the runtime's switches or for a file is asked of who refuses it. */
function isJudgedInside({ env = {} }: StartScript, { refused }: StartExpectation): boolean {
  return refused !== undefined && !Object.keys(env).some((name) => name.startsWith('SALLYPORT_'));
}

/** In the order of a start. */
async function judgeInside(
  directory: string,
  { env = {} }: StartScript,
  { refused = '' }: StartExpectation,
): Promise<readonly string[]> {
  const at = (name: string): string => join(directory, name);
  let said = '';
  try {
    refuseRuntimeSwitches(env);
    await loadOrCreateCertificateAuthority({
      certificateFile: at('public/ca.pem'),
      keyFile: at('secret/ca.key'),
    });
    const store = new SealedStateStore({ directory: at('secret'), key: { file: at('secret/state.key') } });
    await store.readAll().finally(() => store.close());
    await loadAdminToken({ file: at('secret/admin-token') });
  } catch (error) {
    said = String(error);
  }
  const found = said.includes(refused) ? [] : [`no ${refused} in ${said}`];
  return [...found, ...findLeaks('the message', Buffer.from(said), canaries)];
}

async function prepare(directory: string, { beforehand }: StartScript, earlier: Scratch): Promise<void> {
  if (!beforehand) return void (await mkdir(join(directory, secretsDir), { recursive: true, mode: 0o700 }));
  await cp(earlier.path, directory, { recursive: true });
  const file = join(directory, beforehand.file);
  if (beforehand.text !== undefined) await writeFile(file, beforehand.text);
  if (beforehand.mode !== undefined) await chmod(file, beforehand.mode);
}

function filled(env: Readonly<Record<string, string>>, directory: string): Record<string, string> {
  const fill = (text: string): string =>
    Object.entries(values).reduce(
      (done, [name, value]) => done.replaceAll(`<${name}>`, value),
      text.replaceAll('<STATE>', directory),
    );
  return Object.fromEntries(Object.entries(env).map(([name, text]) => [name, fill(text)]));
}

/** Once it runs: what every process of the user can see of it. */
async function look(
  child: SpawnedProcess,
  directory: string,
  { signal }: StartScript,
  { modes = {} }: StartExpectation,
): Promise<readonly string[]> {
  await child.record(({ msg }) => msg === 'ready');
  const found: string[] = [];
  for (const name of ['environ', 'cmdline', 'comm', 'status'])
    found.push(...findLeaks(`/proc/PID/${name}`, await readFile(`/proc/${child.pid}/${name}`), canaries));
  for (const [name, mode] of Object.entries(modes)) {
    const got = ((await stat(join(directory, name))).mode & 0o777).toString(8);
    if (got !== mode) found.push(`${name} has mode ${got}`);
  }
  const left = (await readdir(tmpdir())).filter((name) => name.includes(`sallyport-${child.pid}`));
  if (left.length > 0) found.push(`left in the temporary directory: ${left.join(', ')}`);
  if (signal !== undefined) child.kill(signal);
  child.kill('SIGTERM');
  return found;
}

/** Files that the row wrote itself are the operator's. */
async function leaksIn(directory: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    found.push(...findLeaks(entry.name, await readFile(join(entry.parentPath, entry.name)), canaries));
  }
  return found;
}
