import { expect, it } from 'vitest';
import { bubblewrapArguments } from '../../../src/workload/isolation/bubblewrap-arguments.ts';

const given = {
  ...{ etc: '/m/0', bundle: '/m/1', temporary: '/m/2', longTemporary: '/m/3', seccompDescriptor: 5 },
  links: { bin: 'usr/bin' },
  hidden: [{ path: '/usr/hidden', isDirectory: false }],
  mounts: [
    { source: '/m/4', target: '/app', isWritable: false },
    { source: '/m/5', target: '/state', isWritable: true },
  ],
};
const text = ` ${bubblewrapArguments(given).join(' ')} `;

it.each([
  '--unshare-user',
  '--unshare-pid',
  '--unshare-ipc',
  '--disable-userns',
  '--die-with-parent',
  '--cap-drop ALL',
  '--ro-bind /usr /usr',
  '--ro-bind /dev/null /usr/hidden',
  '--symlink usr/bin /bin',
  '--ro-bind /m/0 /etc',
  '--bind /m/2 /tmp',
  '--ro-bind /m/4 /app',
  '--bind /m/5 /state',
  '--clearenv',
  '--seccomp 5',
])('has %s', (option) => expect(text).toContain(` ${option} `));

it('closes the root for writes after everything is mounted in it', () => {
  expect(text.indexOf(' --remount-ro / ')).toBeGreaterThan(text.indexOf(' /state '));
});

it('shares no network of its own making: the namespace is entered before', () =>
  expect(text).not.toMatch(/--unshare-(net|all)|--share-net/));
