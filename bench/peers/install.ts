// Installs and builds the peers that come from package registries, outside of the sources and of the project's dependencies:
// `npm run bench:peers [-- NAME...]`. nginx, HAProxy and squid are packages of the system. A peer that cannot be installed is
// reported and left out.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { peersCache, peersFolder } from '../support/peer.ts';

const python: string = join(peersCache, 'python');
const MITMPROXY = 'mitmproxy';

const steps: Readonly<Record<string, () => void>> = {
  goproxy: () =>
    run('go', ['build', '-o', join(peersCache, 'goproxy'), '.'], { folder: join(peersFolder, 'goproxy') }),
  hudsucker: () =>
    run('cargo', ['build', '--release', '--locked'], {
      folder: join(peersFolder, 'hudsucker'),
      env: { CARGO_TARGET_DIR: join(peersCache, 'cargo') },
    }),
  'http-proxy-3': installPackages,
  'http-mitm-proxy': installPackages,
  mockttp: installPackages,
  fastify: installPackages,
  mitmproxy: installMitmproxy,
  langgraph: installAgentServer,
};

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(steps);
const unknown = wanted.filter((name) => !Object.hasOwn(steps, name));
if (unknown.length > 0) {
  console.error(`cannot install ${unknown.join(', ')}; this installs ${Object.keys(steps).join(', ')}`);
  process.exit(2);
}
mkdirSync(peersCache, { recursive: true });
for (const step of new Set(wanted.map((name) => steps[name]))) {
  const names = wanted.filter((name) => steps[name] === step).join(', ');
  try {
    step?.();
    console.log(`${names}: installed`);
  } catch (error) {
    console.error(`${names}: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}

/** One folder for the packages of all Node peers. */
function installPackages(): void {
  copyFileSync(join(peersFolder, 'package.json'), join(peersCache, 'package.json'));
  run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { folder: peersCache });
}

/** The public agent server, by the lock of its interoperability tests. */
function installAgentServer(): void {
  const [locked, folder] = [
    join(peersFolder, '..', '..', 'interop', 'agent-server'),
    join(peersCache, 'langgraph'),
  ];
  mkdirSync(folder, { recursive: true });
  for (const file of ['package.json', 'package-lock.json'])
    copyFileSync(join(locked, file), join(folder, file));
  run('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { folder });
}

function installMitmproxy(): void {
  run('python3', ['-m', 'venv', '--clear', python], { folder: peersCache });
  const pip = join(python, 'bin', 'pip');
  run(pip, ['install', '--quiet', '--disable-pip-version-check', MITMPROXY], { folder: peersCache });
  const { stdout } = spawnSync(pip, ['show', MITMPROXY], { encoding: 'utf8' });
  writeFileSync(join(python, 'mitmproxy.version'), /^Version: (.*)$/m.exec(stdout)?.[1] ?? 'unknown');
}

type RunOptions = { readonly folder: string; readonly env?: Readonly<Record<string, string>> };

function run(program: string, args: readonly string[], { folder, env = {} }: RunOptions): void {
  const done = spawnSync(program, [...args], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (done.error) throw new Error(`${program} is not installed (${done.error.message})`);
  if (done.status !== 0) throw new Error(`${program} ${args.join(' ')} failed`);
}
