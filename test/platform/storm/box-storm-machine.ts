// What a storm of boxes finds on this machine: the processes of one box host with their memory, and what is left of its boxes.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { hostPid, sidecarPids } from '../../box-host/box-host-scene.ts';

/** The processes below this one, without it. */
export function descendantsOf(pid: number): readonly number[] {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), parentOf(name)] as const);
  const found = [pid];
  for (const one of found)
    found.push(...parents.filter(([, parent]) => parent === one).map(([child]) => child));
  return found.slice(1);
}

function parentOf(name: string): number {
  try {
    return Number(readFileSync(`/proc/${name}/stat`, 'latin1').split(') ').at(-1)?.split(' ')[1]);
  } catch {
    return -1; // it has just ended
  }
}

/** Bytes, with what is shared divided among those who share it. */
export function pssOf(pids: readonly number[]): number {
  const kilobytes = pids.map((pid) => {
    try {
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      return 0;
    }
  });
  return kilobytes.reduce((sum, one) => sum + one, 0) * 1024;
}

export type HostState = {
  readonly host: number;
  readonly sidecars: readonly number[];
  /** Of boxes: those that are no sidecars. */
  readonly others: readonly number[];
  readonly namespaces: number;
  readonly mounts: number;
  readonly descriptors: number;
};

export async function readHost(directory: string): Promise<HostState | undefined> {
  const host = await hostPid(directory);
  if (host === undefined) return undefined;
  const sidecars = await sidecarPids(directory);
  const inSidecars = new Set(sidecars.flatMap((pid) => [pid, ...descendantsOf(pid)]));
  const links = readdirSync(`/proc/${host}/fd`).map((fd) => [fd, linkOf(host, fd)] as const);
  const mountNamespace = links.find(([, link]) => link.startsWith('mnt:'))?.[0];
  return {
    ...{ host, sidecars, descriptors: links.length },
    others: descendantsOf(host).filter((pid) => !inSidecars.has(pid)),
    namespaces: links.filter(([, link]) => link.startsWith('net:')).length,
    mounts: mountNamespace === undefined ? 0 : countMounts(host, mountNamespace),
  };
}

function linkOf(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return '';
  }
}

/** Mounts of boxes in the namespace that this descriptor of the box host holds. */
function countMounts(pid: number, fd: string): number {
  const enter = [`--mount=/proc/${pid}/fd/${fd}`, 'cat', '/proc/self/mountinfo'];
  const text = execFileSync('nsenter', enter, { encoding: 'utf8' });
  return text.split('\n').filter((line) => /\/[0-9a-f-]{36}\/(?:root|disk|files|snapshot) /.test(line))
    .length;
}

/** What is left of boxes, in words; empty: nothing. */
export function describeLeftovers(directory: string, state: HostState | undefined): readonly string[] {
  const loops = execFileSync('losetup', ['-l', '-n', '-O', 'BACK-FILE'], { encoding: 'utf8' });
  const files = ['boxes', join('bubblewrap', 'boxes'), 'sidecars'].flatMap((folder) =>
    namesIn(join(directory, folder)).map((name) => `${folder}/${name}`),
  );
  return [
    ...(state?.others ?? []).map((pid) => `process ${pid}`),
    ...(state?.sidecars ?? []).map((pid) => `sidecar ${pid}`),
    ...(state !== undefined && state.namespaces > 0 ? [`${state.namespaces} network namespaces`] : []),
    ...(state !== undefined && state.mounts > 0 ? [`${state.mounts} mounts`] : []),
    ...loops.split('\n').filter((line) => line.includes(directory)),
    ...files.map((name) => `file ${name}`),
  ];
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
