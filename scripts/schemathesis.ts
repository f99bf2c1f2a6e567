// `npm run schemathesis [-- OPTIONS]`: runs all checks of schemathesis (PyPI) against a platform of its own on loopback, with an
// embedded database. Options are those of `schemathesis run`. Exits with the code of schemathesis: 0 if nothing was found.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { mintKey } from '../src/platform/identity/api-key.ts';
import { initPlatform, startPlatform } from '../test/support/platform-process.ts';
import { createScratch } from '../test/support/scratch.ts';
import { endBoxHost } from './demo-platform.ts';
import { projectRoot } from '../test/support/spawned-process.ts';

const settings = join(import.meta.dirname, 'schemathesis');
const requirements = join(settings, 'requirements.txt');

const program = installSchemathesis();
await using scratch = await createScratch();
// The embedded server drops privileges of root, and must reach its data.
chmodSync(scratch.path, 0o755);
const key = mintKey('service').text;
const options = {
  dataDirectory: join(scratch.path, 'platform'),
  // Each request comes from another address: see hooks.py.
  env: {
    SALLYPORT_PLATFORM_TRUSTED_PROXIES: '127.0.0.1',
    // Nothing that is sent may be built or run.
    SALLYPORT_PLATFORM_RUNNER_START: 'false',
    // No generated endpoint is asked for anything.
    SALLYPORT_PLATFORM_EXPORTS_ALLOWED_ENDPOINTS: 'https://127.0.0.1:1',
    SALLYPORT_PLATFORM_EXPORTS_CREATIONS_PER_HOUR: '100000',
    SALLYPORT_PLATFORM_EXPORTS_MAX_SCHEDULES: '100000',
  },
};
await initPlatform(options, key);
process.exitCode = await run();

async function run(): Promise<number> {
  await using platform = startPlatform(options);
  const { port } = await platform.ready;
  const url = `http://127.0.0.1:${port}`;
  const code = await testApi(url);
  await requireAccess(url);
  for (const record of platform.process.records.filter(({ level }) => level === 'error'))
    console.log(JSON.stringify(record));
  // Its database must have ended before its files are removed.
  platform.process.kill('SIGTERM');
  await platform.process.exited;
  await endBoxHost(options.dataDirectory);
  return code;
}

async function testApi(url: string): Promise<number> {
  const child = spawn(
    program,
    [
      ...['--config-file', join(settings, 'schemathesis.toml'), 'run', `${url}/openapi.json`],
      ...process.argv.slice(2),
    ],
    {
      cwd: scratch.path,
      stdio: 'inherit',
      env: {
        ...process.env,
        PLATFORM_KEY: key,
        PLATFORM_KEY_ID: await findKey(url),
        SANDBOX_TOKEN: await createSandboxToken(url),
        WORKSPACE: await findWorkspace(url),
        SCHEMATHESIS_HOOKS_FILE: join(settings, 'hooks.py'),
      },
    },
  );
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

/** A run that has lost its own key has tested nothing since. */
async function requireAccess(url: string): Promise<void> {
  await findKey(url);
  await findWorkspace(url);
}

/** Some routes are for sandboxes, which have tokens of their own. */
async function createSandboxToken(url: string): Promise<string> {
  const { token } = await ask<{ readonly token: string }>(url, 'POST', '/v1/sandboxes/schemathesis/tokens');
  return token;
}

async function findWorkspace(url: string): Promise<string> {
  const [workspace] = await ask<readonly { readonly id: string }[]>(url, 'GET', '/api/v1/workspaces');
  if (workspace === undefined) throw new Error('the platform has no workspace');
  return workspace.id;
}

async function findKey(url: string): Promise<string> {
  const [own] = await ask<readonly { readonly id: string }[]>(
    url,
    'GET',
    '/api/v1/orgs/current/service-keys',
  );
  if (own === undefined) throw new Error('the platform has no key');
  return own.id;
}

async function ask<T>(url: string, method: string, path: string): Promise<T> {
  const response = await fetch(url + path, { method, headers: { 'x-api-key': key } });
  if (!response.ok) throw new Error(`${method} ${path}: status ${response.status}`);
  return (await response.json()) as T;
}

/** Once for each list of versions, in the cache of the project. Returns the program. */
function installSchemathesis(): string {
  const folder = join(projectRoot, 'node_modules', '.cache', 'schemathesis');
  const bin = join(folder, 'bin');
  const installed = join(folder, 'requirements.txt');
  const wanted = readFileSync(requirements, 'utf8');
  if (existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return join(bin, 'schemathesis');
  rmSync(folder, { recursive: true, force: true });
  mustRun('python3', ['-m', 'venv', folder]);
  mustRun(join(bin, 'pip'), ['install', '--quiet', '--disable-pip-version-check', '-r', requirements]);
  copyFileSync(requirements, installed);
  return join(bin, 'schemathesis');
}

function mustRun(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${error?.message ?? `code ${status}`}`);
}
