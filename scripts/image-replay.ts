// Replays the steps of the Dockerfile without an engine: a Debian by debootstrap in place of the base image, with the Node of the
// lockfile and the npm of this machine; each RUN in a chroot. Then it starts what the image would start, with a read-only root, in
// a network namespace of its own, and runs the health check. `npm run image:replay`; needs root, debootstrap and a registry.
import { type SpawnSyncOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseDockerfile, parsePairs, parseWords } from './dockerfile.ts';

const root: string = join(import.meta.dirname, '..');
const cache: string = join(root, 'node_modules', '.cache', 'image-replay');
const base: string = join(cache, 'base');
const DEBIAN = { suite: 'bookworm', mirror: 'http://deb.debian.org/debian' };
/** What the base image has besides a minimal Debian. */
const INCLUDED = 'ca-certificates,libatomic1';
const MAX_START_MS = 30_000;

type Stage = {
  readonly folder: string;
  readonly variables: Record<string, string>;
  workdir: string;
  user: string;
  entry: readonly string[];
  command: readonly string[];
  health: readonly string[];
};

if (process.getuid?.() !== 0) throw new Error('a chroot needs root: run it as root');
prepareBase();
const stages = replay();
const final = stages.at(-1);
if (final === undefined) throw new Error('the Dockerfile has no FROM');
console.log(`size: base ${sizeOf(base)} MB, image ${sizeOf(final.folder)} MB`);
await start(final);
for (const { folder } of stages) rmSync(folder, { recursive: true });
console.log('ok');

/** It is kept; `rm -r` of its folder makes it anew. */
function prepareBase(): void {
  if (existsSync(base)) return;
  const unfinished = `${base}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  const options = ['--variant=minbase', `--include=${INCLUDED}`];
  run('debootstrap', [...options, DEBIAN.suite, unfinished, DEBIAN.mirror]);
  cpSync(process.execPath, join(unfinished, 'usr/local/bin/node'));
  const npm = dirname(dirname(realpathSync(run('sh', ['-c', 'command -v npm']).trim())));
  cpSync(npm, join(unfinished, 'usr/local/lib/node_modules/npm'), { recursive: true });
  run('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(unfinished, 'usr/local/bin/npm')]);
  renameSync(unfinished, base);
}

function replay(): readonly Stage[] {
  const all: Stage[] = [];
  for (const { name, value } of parseDockerfile(readFileSync(join(root, 'Dockerfile'), 'utf8'))) {
    if (name === 'FROM') all.push(createStage(all.length));
    const stage = all.at(-1);
    if (stage === undefined || name === 'FROM') continue;
    console.log(`${name} ${value.slice(0, 100)}`);
    apply(stage, name, value, all);
  }
  return all;
}

function createStage(at: number): Stage {
  const folder = join(cache, `stage-${at}`);
  rmSync(folder, { recursive: true, force: true });
  run('cp', ['-a', '--reflink=auto', base, folder]);
  const variables = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };
  return { folder, variables, workdir: '/', user: '0:0', entry: [], command: [], health: [] };
}

function apply(stage: Stage, name: string, value: string, all: readonly Stage[]): void {
  if (name === 'WORKDIR') mkdirSync(join(stage.folder, (stage.workdir = value)), { recursive: true });
  else if (name === 'ENV') Object.assign(stage.variables, parsePairs(value));
  else if (name === 'COPY') copy(stage, value.split(' '), all[0]);
  else if (name === 'RUN') runInside(stage, value);
  else if (name === 'USER') stage.user = value;
  else if (name === 'ENTRYPOINT') stage.entry = parseWords(value);
  else if (name === 'CMD') stage.command = parseWords(value);
  else if (name === 'HEALTHCHECK') stage.health = parseWords(value);
  else if (name !== 'EXPOSE' && name !== 'LABEL' && name !== 'ARG') throw new Error(`${name} is not known`);
}

/** As the engine does: a directory's content goes into the target. */
function copy(stage: Stage, words: readonly string[], build: Stage | undefined): void {
  const isFromBuild = words[0] === '--from=build';
  const from = isFromBuild ? (build?.folder ?? '') : root;
  const target = words.at(-1) ?? '';
  const to = join(stage.folder, resolve(stage.workdir, target));
  for (const source of words.slice(isFromBuild ? 1 : 0, -1)) {
    const isInto = target.endsWith('/') || target === '.';
    cpSync(join(from, source), isInto ? join(to, source) : to, { recursive: true });
  }
  run('chown', ['-R', '0:0', to]);
}

function runInside(stage: Stage, line: string): void {
  // The network of this machine: its resolver and authorities, for the registry.
  cpSync('/etc/resolv.conf', join(stage.folder, 'etc/resolv.conf'));
  const { NODE_EXTRA_CA_CERTS: authorities } = process.env;
  const extra = authorities && '/tmp/authorities.pem';
  if (extra) cpSync(authorities, join(stage.folder, extra));
  const env = extra ? { ...stage.variables, NODE_EXTRA_CA_CERTS: extra } : stage.variables;
  const script = `mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"; exec chroot "$1" sh -c "cd '${stage.workdir}' && $2"`;
  const wrapped = ['--mount', '--pid', '--fork', 'sh', '-euc', script, 'sh', stage.folder, line];
  run('unshare', wrapped, { env, stdio: 'inherit' });
  if (extra) rmSync(join(stage.folder, extra));
}

/** With a read-only root and a volume for the state, as `docker run --read-only -v`. */
async function start(stage: Stage): Promise<void> {
  const [uid = '0', gid = '0'] = stage.user.split(':');
  const state = stage.variables['SALLYPORT_STATE_DIR'] ?? '';
  const script = `
    ip link set lo up
    mount --bind "$1" "$1"
    mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"
    mount -t tmpfs -o uid=${uid},gid=${gid},mode=0755 tmpfs "$1${state}"
    mount -o remount,ro,bind "$1"
    root="$1"; shift
    exec chroot --userspec=${stage.user} --groups= "$root" "$@"`;
  const words = [...stage.entry, ...stage.command];
  const isolation = ['--mount', '--net', '--pid', '--fork', '--kill-child'];
  const child = spawn('unshare', [...isolation, 'sh', '-euc', script, 'sh', stage.folder, ...words], {
    env: stage.variables,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const deadline = setTimeout(() => child.kill('SIGKILL'), MAX_START_MS);
  let output = '';
  for await (const text of child.stdout.setEncoding('utf8')) {
    output += String(text);
    if (output.includes('"msg":"ready"')) break;
  }
  if (!output.includes('"msg":"ready"')) throw new Error(`it did not become ready:\n${output}`);
  clearTimeout(deadline);
  console.log(output.trim().split('\n').at(-1));
  const pid = run('pgrep', ['-P', String(child.pid)]).trim();
  // The health check and the end, as by the engine.
  const entered = ['-t', pid, '--mount', '--net', '--pid', `--root=/proc/${pid}/root`, `--setuid=${uid}`];
  run('nsenter', [...entered, `--setgid=${gid}`, '--', ...stage.health], { env: stage.variables });
  console.log('health check: passed');
  process.kill(Number(pid), 'SIGTERM');
  const [code] = await ended;
  if (code !== 0) throw new Error(`it ended with ${String(code)} after SIGTERM`);
}

function sizeOf(folder: string): number {
  return Math.round(Number(run('du', ['-sb', folder]).split('\t')[0]) / 1e6);
}

function run(command: string, args: readonly string[], options: SpawnSyncOptions = {}): string {
  const settings = { encoding: 'utf8' as const, maxBuffer: 1 << 26, ...options };
  const { status, stdout, stderr, error } = spawnSync(command, args, settings);
  if (error !== undefined) throw new Error(`${command} cannot be started: ${error.message}`);
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')} ended with ${status}\n${String(stderr)}${String(stdout)}`);
  return String(stdout ?? '');
}
