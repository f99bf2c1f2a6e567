// Makes a namespace and keeps it by open descriptors alone: no process lives in it, and the kernel removes it when the
// descriptors are closed, also by a kill -9. A process id could be used again by another process; a descriptor cannot.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { killGroup, lastLine, systemEnvironment } from '../../command.ts';
import { within } from '../time-limit.ts';

export type NamespaceKind = 'mnt' | 'net' | 'user';

export type OpenNamespaces = Readonly<Partial<Record<NamespaceKind, number>>>;

/** What the maker of a namespace prints when it is set up. It lives until its standard input ends. */
export const SET_UP_SCRIPT_END = 'echo ready && exec cat';
const READY = 'ready\n';
const TIMEOUT_MS = 15_000;
const KILLED_MS = 1_000;
const MAX_COMPLAINT = 4096;

/**
 * Runs `command`, which enters new namespaces and runs a script that ends with SET_UP_SCRIPT_END, and opens the namespaces
 * of these kinds.
 */
export async function openNamespaces(
  [program = '', ...args]: readonly string[],
  kinds: readonly NamespaceKind[],
  descriptors: readonly number[] = [],
  timeoutMs: number = TIMEOUT_MS,
): Promise<OpenNamespaces> {
  const maker = spawn(program, args, {
    cwd: '/',
    env: systemEnvironment,
    stdio: ['pipe', 'pipe', 'pipe', ...descriptors],
    detached: true,
  });
  const { promise, resolve, reject } = Promise.withResolvers<OpenNamespaces>();
  let [stdout, stderr] = ['', ''];
  maker.on('error', reject);
  maker.stdin?.on('error', () => undefined);
  maker.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    stderr = (stderr + piece).slice(-MAX_COMPLAINT);
  });
  maker.stdout?.setEncoding('utf8').on('data', (piece: string) => {
    stdout += piece;
    if (stdout !== READY) return;
    try {
      // Our child has not been waited for yet, so its id belongs to it, whether it lives or not.
      if (maker.pid === undefined || maker.exitCode !== null) throw new Error('it ended');
      resolve(openAll(maker.pid, kinds));
    } catch (error) {
      reject(error);
    }
  });
  const closed = new Promise<void>((done) => {
    maker.on('close', (code) => {
      reject(new Error(lastLine(stderr) || `${program} ended with ${code}`));
      done();
    });
  });
  try {
    return await within(promise, timeoutMs, `${program} does not respond`);
  } catch (error) {
    killGroup(maker);
    // It may have been set up meanwhile.
    void promise.then(closeNamespaces, () => undefined);
    throw error;
  } finally {
    maker.stdin?.end();
    if (maker.pid !== undefined) await waitForEnd(maker, closed);
  }
}

/** The namespaces are open by now: a maker that does not end keeps nobody waiting. */
async function waitForEnd(maker: ChildProcess, closed: Promise<void>): Promise<void> {
  const hasEnded = await within(closed, KILLED_MS, 'it does not end').then(
    () => true,
    () => false,
  );
  if (hasEnded) return;
  killGroup(maker);
  await within(closed, KILLED_MS, 'it does not end').catch(() => undefined);
}

function openAll(pid: number, kinds: readonly NamespaceKind[]): OpenNamespaces {
  const opened: Partial<Record<NamespaceKind, number>> = {};
  try {
    for (const kind of kinds) opened[kind] = openForeign(pid, kind);
    return opened;
  } catch (error) {
    closeNamespaces(opened);
    throw error;
  }
}

/** Never our own namespace: what happens in it would happen to the host. */
function openForeign(pid: number, kind: NamespaceKind): number {
  const descriptor = openSync(`/proc/${pid}/ns/${kind}`, 'r');
  const own = openSync(`/proc/self/ns/${kind}`, 'r');
  try {
    if (!isSame(descriptor, own)) return descriptor;
    throw new Error(`the ${kind} namespace is that of the host`);
  } catch (error) {
    closeSync(descriptor);
    throw error;
  } finally {
    closeSync(own);
  }
}

function isSame(one: number, other: number): boolean {
  const [a, b] = [fstatSync(one, { bigint: true }), fstatSync(other, { bigint: true })];
  return a.ino === b.ino && a.dev === b.dev;
}

export function closeNamespaces(namespaces: OpenNamespaces): void {
  for (const descriptor of Object.values(namespaces)) closeSync(descriptor);
}
