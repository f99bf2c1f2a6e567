// What the programs that Sallyport is compared with have in common: where they are installed, which user they run as, a
// folder of their own. A program that is not installed is left out.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child, Children } from './children.ts';
import { connectTo } from './connection.ts';
import { type Scene, PROXY_CORE, findFreePort, withOutput } from './scene.ts';

export type Program = { readonly path: string; readonly version: string };

export type Peer = { readonly port: number; readonly workerPid: number };

/** The user nobody, when we run as root. */
const UNPRIVILEGED = process.getuid?.() === 0 ? 65_534 : undefined;
const START_DEADLINE_MS = 5_000;

/** The path and version of the program, if it is installed. */
export function findProgram(name: string): Program | undefined {
  // The PATH of an ordinary user has no sbin.
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  const path = directories.map((directory) => join(directory, name)).find((file) => existsSync(file));
  if (path === undefined) return undefined;
  const { stdout, stderr } = spawnSync(path, ['-v'], { encoding: 'utf8' });
  return { path, version: /\d+\.\d+[\d.]*/.exec(stdout + stderr)?.[0] ?? 'unknown' };
}

/** `command` and the files it reads, for a folder and a port; `workerOf` finds the process that does the work. */
export async function startPeer(
  name: string,
  children: Children,
  scene: Scene,
  options: {
    files(directory: string, port: number): Readonly<Record<string, string>>;
    command(directory: string): readonly string[];
    workerOf(child: Child): number | undefined;
  },
): Promise<Peer> {
  const directory = join(scene.directory, name);
  await mkdir(directory);
  if (UNPRIVILEGED !== undefined) await chown(directory, UNPRIVILEGED, UNPRIVILEGED);
  const port = await findFreePort();
  for (const [file, content] of Object.entries(options.files(directory, port)))
    await writeFile(join(directory, file), content);
  const outputFile = join(directory, 'output');
  const child = withOutput(outputFile, (fd) =>
    children.start(name, options.command(directory), {
      core: PROXY_CORE,
      output: fd,
      errors: fd,
      cwd: directory,
      ...(UNPRIVILEGED === undefined ? {} : { uid: UNPRIVILEGED }),
    }),
  );
  const endMs = performance.now() + START_DEADLINE_MS;
  while (performance.now() < endMs) {
    const workerPid = options.workerOf(child);
    const socket = workerPid === undefined ? undefined : await connectTo(port).catch(() => undefined);
    if (workerPid !== undefined && socket !== undefined) {
      socket.destroy();
      return { port, workerPid };
    }
    await delay(10);
  }
  throw new Error(`${name} does not start:\n${readFileSync(outputFile, 'utf8')}`);
}
