import { describe, expect, it } from 'vitest';
import { parsePlacement } from '../../../src/box-host/cgroup/placement.ts';

const v1Mounts = [
  '30 25 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
  '31 30 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory',
  '32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:10 - cgroup cgroup rw,cpu,cpuacct',
  '33 30 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw',
].join('\n');

describe('the place of the groups', () => {
  it('is found for each controller of version 1 and for version 2', () => {
    const cgroup = '9:memory:/session/one\n3:cpu,cpuacct:/\n0::/user.slice\n';
    const { v1, v2 } = parsePlacement(cgroup, v1Mounts);
    expect(Object.fromEntries(v1)).toEqual({
      memory: '/sys/fs/cgroup/memory/session/one',
      cpu: '/sys/fs/cgroup/cpu,cpuacct',
      cpuacct: '/sys/fs/cgroup/cpu,cpuacct',
    });
    expect(v2).toBe('/sys/fs/cgroup/unified/user.slice');
  });

  it('is relative to what a container has mounted', () => {
    const mounts = '31 30 0:27 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory';
    expect(parsePlacement('9:memory:/docker/abc/inner', mounts).v1.get('memory')).toBe(
      '/sys/fs/cgroup/memory/inner',
    );
    expect(parsePlacement('9:memory:/docker/abcd', mounts).v1.get('memory')).toBeUndefined();
  });

  it('is unknown for a controller that is not mounted, and for a named tree', () => {
    const { v1, v2 } = parsePlacement('8:pids:/\n7:name=systemd:/\n0::/\n', '');
    expect([...v1, v2]).toEqual([undefined]);
  });
});
