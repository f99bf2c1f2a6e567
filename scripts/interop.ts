// `npm run interop`: installs the public clients of sandboxes by their own locks, and runs them against a platform whose boxes
// bubblewrap isolates. `npm run interop -- install` only installs; what is there already is kept.
// `npm run interop -- agent` does so for the agent server: the public suite for checkpoint savers, its clients, then the same calls
// to it and to the public server.
// `npm run interop -- control-plane` runs both public deploy commands against a platform with its runner, and deploys by each package
// manager; `install` after it only installs the commands.
// `npm run interop -- exports` has readers of Parquet read what is exported, to S3 servers that check signatures; `install` after it only
// installs their packages, and `python` prints the program that has them.
// `npm run interop -- traces` runs both public clients of traces against a platform, also while requests fail and it is killed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isInstalled, python as sandboxPython, pythonFolder } from '../test/interop/sandbox-clients.ts';
import { setup as setupProgram } from '../test/support/program-setup.ts';

const root = join(import.meta.dirname, '..');
const [what = 'sandboxes', second] = process.argv.slice(2);
const vitest = join(root, 'node_modules', '.bin', 'vitest');

function run(command: string, args: readonly string[], cwd: string = root): void {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`);
}

async function installPython(folder: string, lock: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  run('python3', ['-m', 'venv', folder]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--require-hashes'];
  run(join(folder, 'bin', 'python'), [...pip, '-r', lock]);
}

function installNode(folder: string, name: string): void {
  if (existsSync(join(folder, 'node_modules', name))) return;
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], folder);
}

/** The program of a virtual environment with the packages of the folder; one for each version of its lock. */
async function pythonOf(folder: string, name: string): Promise<string> {
  const lock = join(folder, 'requirements.txt');
  const version = createHash('sha256').update(readFileSync(lock)).digest('hex').slice(0, 16);
  const venv = join(root, 'node_modules', '.cache', `${name}-interop-${version}`);
  const python = join(venv, 'bin', 'python');
  if (!existsSync(python)) await installPython(venv, lock);
  return python;
}

async function runControlPlane(folder: string): Promise<void> {
  installNode(folder, join('@langchain', 'langgraph-cli'));
  const python = await pythonOf(folder, 'control-plane');
  if (second === 'install') return;
  run(process.execPath, [join(folder, 'clients.mjs'), python]);
  run(process.execPath, [join(folder, 'package-managers.mjs')]);
}

async function installClients(): Promise<void> {
  installNode(join(root, 'interop'), 'langsmith');
  if (!isInstalled('langsmith-sandbox-python'))
    await installPython(pythonFolder, join(root, 'interop', 'requirements.txt'));
}

async function runTraces(): Promise<void> {
  await installClients();
  // The bundle, as users install it: it is also ready in half of the time of the sources.
  await setupProgram();
  run(process.execPath, [join(root, 'interop', 'traces', 'clients.mjs'), sandboxPython]);
}

async function runExports(folder: string): Promise<void> {
  const python = await pythonOf(folder, 'exports');
  if (second === 'python') return console.log(python);
  if (second === 'install') return;
  await setupProgram();
  run(process.execPath, [join(folder, 'exports.mjs'), python]);
}

async function runAgent(folder: string): Promise<void> {
  installNode(folder, join('@langchain', 'langgraph-api'));
  const python = await pythonOf(folder, 'agent');
  if (second === 'install') return;
  if (second !== 'peer') run(vitest, ['run', '--config', join(folder, 'validation.config.mjs')]);
  const side = second === 'peer' ? ['--peer'] : [];
  run(process.execPath, [join(folder, 'clients.mjs'), python, ...side]);
  run(process.execPath, [join(folder, 'differential.mjs'), ...side]);
}

if (what === 'agent') await runAgent(join(root, 'interop', 'agent-server'));
else if (what === 'control-plane') await runControlPlane(join(root, 'interop', 'control-plane'));
else if (what === 'traces') await runTraces();
else if (what === 'exports') await runExports(join(root, 'interop', 'exports'));
else {
  await installClients();
  if (what !== 'install') run(vitest, ['run', 'test/interop/sandbox-clients.test.ts']);
}
