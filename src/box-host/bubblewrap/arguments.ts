// The options of bwrap for a program in a box. Pure. They go to bwrap through a descriptor, because the command line of a
// process can be read by every user of the host, and `env_vars` may hold keys.
import type { HiddenPath } from '../snapshots/base-snapshot.ts';
import { boxUser } from './etc-files.ts';

export type BoxArguments = {
  /** The mounted root of the box on the host. */
  readonly root: string;
  /** Of the host, bound read-only: the snapshot `base` has only links to it. */
  readonly hostUsr: { readonly hidden: readonly HiddenPath[] } | undefined;
  /** A directory of ours with the programs that every box gets; undefined: none. */
  readonly programs: string | undefined;
  /** /dev/shm, which else could grow to half of the memory. */
  readonly sharedMemoryBytes: number;
  readonly hostname: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly seccompDescriptor: number;
};

/** Where a box finds the programs of ours. */
export const programsDirectory = '/.sallyport';

/** The directories that bwrap mounts over. Nothing else decides where a mount goes: a link there could lead it elsewhere. */
export const mountPoints: readonly string[] = ['/proc', '/dev', '/usr', programsDirectory];

export function boxArguments(box: BoxArguments): readonly string[] {
  return [
    ...isolatingOptions,
    ...['--hostname', box.hostname],
    ...['--uid', String(boxUser.uid), '--gid', String(boxUser.gid), '--cap-drop', 'ALL'],
    ...['--bind', box.root, '/'],
    ...(box.hostUsr === undefined ? [] : ['--ro-bind', '/usr', '/usr', ...hidingOptions(box.hostUsr.hidden)]),
    ...(box.programs === undefined ? [] : ['--ro-bind', box.programs, programsDirectory]),
    ...['--proc', '/proc', '--dev', '/dev'],
    ...['--size', String(box.sharedMemoryBytes), '--perms', '1777', '--tmpfs', '/dev/shm'],
    // bwrap makes it a tmpfs without a limit of its own.
    ...['--remount-ro', '/dev'],
    '--clearenv',
    ...Object.entries(box.environment).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--chdir', '/', '--seccomp', String(box.seccompDescriptor)],
  ];
}

/** The network namespace is entered before bwrap starts: the proxy's listener waits in it. */
export const isolatingOptions: readonly string[] = [
  '--unshare-user',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-cgroup',
  '--disable-userns',
  '--die-with-parent',
  '--new-session',
];

export function hidingOptions(paths: readonly HiddenPath[]): readonly string[] {
  return paths.flatMap(({ path, isDirectory }) =>
    isDirectory
      ? ['--perms', '0000', '--size', '4096', '--tmpfs', path, '--remount-ro', path]
      : ['--ro-bind', '/dev/null', path],
  );
}

/** Of bwrap, for all of its arguments. */
const MAX_ARGUMENTS = 9000;

/** What bwrap reads from `--args`. Throws for a NUL, which would begin another argument. */
export function encodeArguments(args: readonly string[]): string {
  if (args.length > MAX_ARGUMENTS - 100) throw new RangeError('env_vars: bwrap takes at most 2900 variables');
  if (args.some((one) => one.includes('\0'))) throw new TypeError('an argument of bwrap contains a NUL');
  return args.map((one) => `${one}\0`).join('');
}
