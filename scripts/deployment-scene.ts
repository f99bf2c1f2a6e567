// A platform for deployments on this machine, from nothing, as `npm run deploy:demo` and the scripts of deployments start it: its
// process with its runner, a key, and the command line on it.
import { execFile } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { chmod, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { denyAddress } from '../src/base/address-guard.ts';
import { removeTree } from '../src/workload/tree-removal.ts';
import {
  createFirstKey,
  type DemoPlatform,
  endBoxHost,
  endProcess,
  followPlatform,
  spawnPlatform,
} from './demo-platform.ts';

const root = join(import.meta.dirname, '..');
const sallyport = join(root, 'bin', 'sallyport.js');

/** Of all packages of all builds, on a busy machine. */
const REMOVAL_MS = 300_000;

export type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };

export type DeploymentScene = DemoPlatform & {
  /** For files; removed at the end. */
  readonly scratch: string;
  /** `sallyport deploy` with the key of the platform. */
  deploy(args: readonly string[]): Promise<Ended>;
};

export type SceneOptions = {
  /** CA of origins that deployments may call; those on loopback are allowed then. */
  readonly originCaPem?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Of the program; without it, that of this checkout. */
  readonly launcher?: string;
};

/** What it starts ends with `cleanup`, and its files are removed. */
export async function startScene(
  cleanup: AsyncDisposableStack,
  { originCaPem, env = {}, launcher = sallyport }: SceneOptions = {},
): Promise<DeploymentScene> {
  const scratch = await mkdtemp(join(tmpdir(), 'sallyport-deploy-'));
  cleanup.defer(async () => {
    // Builds are sealed: without root, nothing is removed from a directory that cannot be written to.
    if (!(await removeTree(scratch, { timeoutMs: REMOVAL_MS })))
      throw new Error(`${scratch} could not be removed`);
  });
  // Under root the database and the deployments run as other users.
  await chmod(scratch, 0o755);
  const sidecarConfigFile = join(scratch, 'sidecars.json');
  const own = await closedRegistryAddresses();
  const config: Record<string, unknown> = {
    egress: { allow_private: [...own, ...(originCaPem === undefined ? [] : ['loopback'])] },
  };
  if (originCaPem !== undefined) {
    await writeFile(join(scratch, 'origin-ca.pem'), originCaPem);
    config['upstream'] = { ca_file: join(scratch, 'origin-ca.pem') };
  }
  await writeFile(sidecarConfigFile, JSON.stringify(config));
  const data = join(scratch, 'data');
  const key = await createFirstKey(data);
  cleanup.defer(() => endBoxHost(data));
  const child = spawnPlatform(data, sidecarConfigFile, env, launcher);
  cleanup.defer(() => endProcess(child));
  const platform = await followPlatform(child, { key, data });
  const deploy = (args: readonly string[]): Promise<Ended> =>
    runToEnd(process.execPath, [launcher, 'deploy', ...args], {
      SALLYPORT_API_URL: platform.url,
      SALLYPORT_API_KEY: key,
    });
  return { ...platform, scratch, deploy };
}

/** The end of a program, whatever its code. */
export function runToEnd(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd: string = root,
): Promise<Ended> {
  const { promise, resolve, reject } = Promise.withResolvers<Ended>();
  const options = { cwd, env: { ...process.env, ...env }, maxBuffer: 64 * 2 ** 20 };
  execFile(command, [...args], options, (error, stdout, stderr) => {
    if (error !== null && typeof error.code !== 'number') reject(error);
    else resolve({ code: Number(error?.code ?? 0), stdout, stderr });
  });
  return promise;
}

/** In some networks registries have addresses that builds do not reach unless the operator lists them, as this does. */
export async function closedRegistryAddresses(): Promise<readonly string[]> {
  const npm = await runToEnd('npm', ['config', 'get', 'registry']).catch(() => undefined);
  const registry = URL.parse(npm?.stdout.trim() ?? '')?.hostname;
  const names = [registry ?? 'registry.npmjs.org', 'pypi.org', 'files.pythonhosted.org'];
  const found = await Promise.all(names.map((name) => lookup(name, { all: true }).catch(() => [])));
  const isClosed = (address: string): boolean =>
    denyAddress(
      address,
      { port: 443, mayBePrivate: false, denies: () => false },
      { allowAllPrivate: false, allowLoopback: false, allowCidrs: [], isOwnListener: () => false },
    ) !== undefined;
  const closed = found.flat().filter(({ address }) => isClosed(address));
  return [...new Set(closed.map(({ address, family }) => `${address}/${family === 4 ? 32 : 128}`))];
}
