// What the programs that Sallyport is compared with have in common: where they are installed, how to install them, which
// user they run as, a folder of their own. A program that is not installed is left out with one line.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child, Children } from './children.ts';
import { connectTo } from './connection.ts';
import { type Scene, PROXY_CORE, findFreePort, withOutput } from './scene.ts';
import type { Subject } from './subject.ts';

export type Program = { readonly path: string; readonly version: string };

export type Peer = {
  readonly name: string;
  /** What to type to install it. */
  readonly install: string;
  find(): Program | undefined;
  start(program: Program, children: Children, scene: Scene): Promise<Subject>;
};

const root: string = join(import.meta.dirname, '..', '..');
export const peersFolder: string = join(root, 'bench', 'peers');
/** What `npm run bench:peers` installs and builds, outside of the sources. */
export const peersCache: string = join(root, 'node_modules', '.cache', 'bench-peers');

/** The user nobody, when we run as root. */
const UNPRIVILEGED = process.getuid?.() === 0 ? 65_534 : undefined;
const START_DEADLINE_MS = 15_000;

/** The path and version of a program of the system, if it is installed. */
export function findProgram(name: string, versionFlag = '-v'): Program | undefined {
  // The PATH of an ordinary user has no sbin.
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  const path = directories.map((directory) => join(directory, name)).find((file) => existsSync(file));
  if (path === undefined) return undefined;
  const { stdout, stderr } = spawnSync(path, [versionFlag], { encoding: 'utf8' });
  return { path, version: /\d+\.\d+[\d.]*/.exec(stdout + stderr)?.[0] ?? 'unknown' };
}

/** A package that `npm run bench:peers` installed. */
export function findPackage(name: string): Program | undefined {
  const file = join(peersCache, 'node_modules', name, 'package.json');
  if (!existsSync(file)) return undefined;
  return { path: file, version: String(JSON.parse(readFileSync(file, 'utf8')).version) };
}

export type PeerStart = {
  files?(directory: string, port: number): Readonly<Record<string, string>>;
  /** Runs after the files are written and before the start. */
  prepare?(directory: string): void;
  command(directory: string, port: number): readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it runs as the user nobody if this process runs as root. */
  readonly isUnprivileged?: boolean;
};

/** Starts a program and waits until it accepts connections. */
export async function startPeer(
  name: string,
  children: Children,
  scene: Scene,
  options: PeerStart,
): Promise<{ readonly port: number; readonly pid: number; readonly directory: string }> {
  const directory = join(scene.directory, name);
  const uid = options.isUnprivileged === true ? UNPRIVILEGED : undefined;
  await mkdir(directory);
  const port = await findFreePort();
  for (const [file, content] of Object.entries(options.files?.(directory, port) ?? {}))
    await writeFile(join(directory, file), content);
  if (uid !== undefined) await chown(directory, uid, uid);
  options.prepare?.(directory);
  const outputFile = join(directory, 'output');
  const child = withOutput(outputFile, (fd) =>
    children.start(name, options.command(directory, port), {
      core: PROXY_CORE,
      output: fd,
      errors: fd,
      cwd: directory,
      env: { HOME: directory, ...options.env },
      ...(uid === undefined ? {} : { uid }),
    }),
  );
  if (await isListening(child, port)) return { port, pid: child.pid, directory };
  throw new Error(`${name} does not start:\n${readFileSync(outputFile, 'utf8')}`);
}

async function isListening(child: Child, port: number): Promise<boolean> {
  const endMs = performance.now() + START_DEADLINE_MS;
  while (performance.now() < endMs && child.process.exitCode === null) {
    const socket = await connectTo(port).catch(() => undefined);
    if (socket !== undefined) {
      socket.destroy();
      return true;
    }
    await delay(10);
  }
  return false;
}
