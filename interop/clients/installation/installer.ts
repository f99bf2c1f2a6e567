// Installs what the chosen rows need: packages and built programs into the cache, programs of the system by apt.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { ClientRow } from '../client-row.ts';
import { type Installation, installations } from './installations.ts';

/** Outside of the checkout: packages of others, some 3 GB. */
export const cacheFolder: string = join(
  process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'),
  'sallyport-clients',
);

const programs = join(import.meta.dirname, '..', 'programs');
const MAX_SECONDS = 900;

/** Why an installation is not there, by its name. */
export type Missing = ReadonlyMap<string, string>;

export async function installFor(
  rows: readonly ClientRow[],
  report: (line: string) => void,
): Promise<Missing> {
  const names = [...new Set(rows.flatMap(({ needs }) => needs))];
  const missing = new Map<string, string>();
  await installDebian(names, report);
  for (const name of names) {
    const reason = await install(name, report);
    if (reason !== undefined) missing.set(name, reason);
  }
  return missing;
}

function installationOf(name: string): Installation {
  const installation = installations[name];
  if (installation === undefined) throw new Error(`a row needs ${name}, which no installation has`);
  return installation;
}

/** One for each content, so that a changed version installs again. */
export function folderOf(name: string): string {
  const content = JSON.stringify(installationOf(name));
  const id = createHash('sha256').update(content).digest('hex').slice(0, 8);
  return join(cacheFolder, `${name}-${id}`);
}

async function install(name: string, report: (line: string) => void): Promise<string | undefined> {
  const installation = installationOf(name);
  if (installation.kind === 'program')
    return isThere(installation.program) ? undefined : `${installation.program} is not installed`;
  const folder = folderOf(name);
  const done = join(folder, '.installed');
  if (existsSync(done)) return undefined;
  report(`installing ${name}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const reason = await runShell(lineFor(installation, folder), folder);
  if (reason === undefined) writeFileSync(done, '');
  return reason === undefined ? undefined : `${name} could not be installed: ${reason}`;
}

function lineFor(installation: Exclude<Installation, { kind: 'program' }>, folder: string): string {
  switch (installation.kind) {
    case 'npm': {
      const dependencies = installation.packages;
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
      return 'npm install --ignore-scripts --no-audit --no-fund --loglevel=error';
    }
    case 'python': {
      const packages = installation.packages.map((one) => `'${one}'`).join(' ');
      return `python3 -m venv . && bin/pip install --quiet --disable-pip-version-check ${packages}`;
    }
    case 'build':
      cpSync(join(programs, installation.source), folder, { recursive: true });
      return installation.build;
    default:
      return installation.fill;
  }
}

/** Of all names at once. What apt cannot install is missing, and said so where it is needed. */
async function installDebian(names: readonly string[], report: (line: string) => void): Promise<void> {
  const wanted = names.map(installationOf).flatMap((one) => {
    const isMissing = one.kind === 'program' && !isThere(one.program);
    return isMissing ? one.debian : [];
  });
  if (wanted.length === 0 || process.getuid?.() !== 0 || !isThere('apt-get')) return;
  report(`apt-get install ${wanted.join(' ')}`);
  const reason = await runShell('apt-get update -qq', '/');
  if (reason !== undefined) report(`apt-get update: ${reason}`);
  // Each by itself: one that is not to be had must not keep the others away.
  for (const one of wanted) {
    const line = `DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${one}`;
    const failed = await runShell(line, '/');
    if (failed !== undefined) report(`apt-get install ${one}: ${failed}`);
  }
}

/** A path, or a program of PATH. */
function isThere(program: string): boolean {
  if (program.includes('/')) return existsSync(program);
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** The last line of its errors if it fails. */
async function runShell(line: string, cwd: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(MAX_SECONDS * 1000);
  const child = spawn('sh', ['-c', line], { cwd, stdio: ['ignore', 'pipe', 'pipe'], signal });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => (said = `${said}${text.toString()}`.slice(-2000)));
  return new Promise((resolve) => {
    child.on('error', ({ message }) => resolve(message));
    child.on('close', (code) =>
      resolve(code === 0 ? undefined : (said.trim().split('\n').at(-1) ?? `it ended with ${code}`)),
    );
  });
}
