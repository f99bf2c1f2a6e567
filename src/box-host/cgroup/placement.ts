// Where the groups of this process lie: reads /proc/self/cgroup and /proc/self/mountinfo. Pure.
import { join, relative } from 'node:path';

/** The directory of the group that this process is in, for each controller of version 1 and for version 2. */
export type Placement = {
  readonly v1: ReadonlyMap<string, string>;
  readonly v2: string | undefined;
};

type Mount = {
  readonly root: string;
  readonly point: string;
  readonly type: string;
  readonly options: string;
};

export function parsePlacement(cgroupText: string, mountinfoText: string): Placement {
  const mounts = mountinfoText.split('\n').flatMap(parseMount);
  const v1 = new Map<string, string>();
  let v2: string | undefined;
  for (const line of cgroupText.split('\n')) {
    const [, hierarchy, controllers = '', path = '/'] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? [];
    if (hierarchy === '0') v2 = locate(mounts, path, ({ type }) => type === 'cgroup2');
    else
      for (const controller of controllers.split(',')) {
        const isOf = ({ type, options }: Mount): boolean =>
          type === 'cgroup' && options.split(',').includes(controller);
        const directory = locate(mounts, path, isOf);
        if (directory !== undefined) v1.set(controller, directory);
      }
  }
  return { v1, v2 };
}

/** `36 25 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory`. */
function parseMount(line: string): readonly Mount[] {
  const [before = '', after = ''] = line.split(' - ');
  const [, , , root, point] = before.split(' ');
  const [type = '', , options = ''] = after.split(' ');
  return root === undefined || point === undefined ? [] : [{ root, point, type, options }];
}

/** Undefined: not mounted, or this process is outside of what is mounted. */
function locate(mounts: readonly Mount[], path: string, isOf: (mount: Mount) => boolean): string | undefined {
  for (const { root, point } of mounts.filter(isOf)) {
    const below = relative(root, path);
    if (below !== '..' && !below.startsWith('../')) return join(point, below);
  }
  return undefined;
}
