// The options of bwrap for a workload. Pure. What a program sees is put together in memory: /usr of the machine, a small /etc, what its
// starter gives it, and nothing else. All of it but what was given to write to is read-only.
import { hidingOptions, isolatingOptions } from '../../box-host/bubblewrap/arguments.ts';
import { boxUser, caBundlePath } from '../../box-host/bubblewrap/etc-files.ts';
import type { HiddenPath } from '../../box-host/snapshots/base-snapshot.ts';

export type BubblewrapMount = {
  readonly source: string;
  readonly target: string;
  readonly isWritable: boolean;
};

export type BubblewrapArguments = {
  /** /etc of the workload. */
  readonly etc: string;
  /** The links of the root, by their names, into /usr. */
  readonly links: Readonly<Record<string, string>>;
  /** What it must not see of /usr. */
  readonly hidden: readonly HiddenPath[];
  readonly bundle: string;
  readonly temporary: string;
  readonly longTemporary: string;
  readonly mounts: readonly BubblewrapMount[];
  readonly seccompDescriptor: number;
};

/** Of /dev/shm, which else could grow to half of the memory. */
const SHARED_MEMORY_BYTES = 64 * 1024 * 1024;

export function bubblewrapArguments(given: BubblewrapArguments): readonly string[] {
  return [
    ...isolatingOptions,
    ...['--hostname', 'workload'],
    ...['--uid', String(boxUser.uid), '--gid', String(boxUser.gid), '--cap-drop', 'ALL'],
    ...['--ro-bind', '/usr', '/usr', ...hidingOptions(given.hidden)],
    ...Object.entries(given.links).flatMap(([name, target]) => ['--symlink', target, `/${name}`]),
    ...['--ro-bind', given.etc, '/etc', '--ro-bind', given.bundle, caBundlePath],
    ...['--dir', '/run', '--dir', boxUser.home, '--dir', '/var/lib'],
    ...['--proc', '/proc', '--dev', '/dev'],
    ...['--size', String(SHARED_MEMORY_BYTES), '--perms', '1777', '--tmpfs', '/dev/shm'],
    ...['--bind', given.temporary, '/tmp', '--bind', given.longTemporary, '/var/tmp'],
    ...given.mounts.flatMap(({ source, target, isWritable }) => [
      isWritable ? '--bind' : '--ro-bind',
      source,
      target,
    ]),
    // bwrap makes them in memory, without a limit of their own.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    '--clearenv',
    ...['--setenv', 'PATH', '/usr/sbin:/usr/bin:/sbin:/bin'],
    ...['--chdir', '/', '--seccomp', String(given.seccompDescriptor)],
  ];
}
