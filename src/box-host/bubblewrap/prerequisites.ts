// What must be installed and allowed before anything can be isolated by bubblewrap: each part that is missing is named with what to
// do about it.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand, systemEnvironment } from '../command.ts';
import { encodeFilter } from './seccomp/filter.ts';

/** `--disable-userns` is from this version on. */
const MIN_VERSION: readonly [number, number] = [0, 8];

/** Each program with its Debian package. */
const PROGRAMS: Readonly<Record<string, string>> = {
  bwrap: 'bubblewrap',
  unshare: 'util-linux',
  nsenter: 'util-linux',
  setpriv: 'util-linux',
  prlimit: 'util-linux',
  mount: 'mount',
  umount: 'mount',
  mountpoint: 'util-linux',
  ip: 'iproute2',
  bash: 'bash',
};

export type Prerequisites = {
  /** Of bwrap; undefined: it is not installed. */
  readonly version: string | undefined;
  /** Empty: nothing is missing. */
  readonly obstacles: readonly string[];
};

export async function checkPrerequisites(): Promise<Prerequisites> {
  const version = await readVersion();
  const obstacles = [...(await findMissing()), ...describeVersion(version), ...describeArchitecture()];
  return { version, obstacles };
}

async function readVersion(): Promise<string | undefined> {
  const { code, stdout } = await runCommand(['bwrap', '--version']);
  return code === 0 ? /[0-9.]+/.exec(stdout)?.[0] : undefined;
}

function describeVersion(version: string | undefined): readonly string[] {
  if (version === undefined) return [];
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < MIN_VERSION[0] || (major === MIN_VERSION[0] && minor < MIN_VERSION[1]);
  return isOld ? [`bubblewrap ${version} is too old: install ${MIN_VERSION.join('.')} or later`] : [];
}

function describeArchitecture(): readonly string[] {
  return encodeFilter(process.arch) === undefined
    ? [`there is no seccomp filter for ${process.arch}: use x64 or arm64`]
    : [];
}

async function findMissing(): Promise<readonly string[]> {
  const { stdout } = await runCommand([
    '/bin/sh',
    '-c',
    'for name; do command -v "$name" >/dev/null || echo "$name"; done',
    'sh',
    ...Object.keys(PROGRAMS),
  ]);
  const names = stdout.split('\n').filter((name) => name !== '');
  return names.map(
    (name) =>
      `${name} is not in ${systemEnvironment['PATH']}: install the Debian package ${PROGRAMS[name] ?? name}`,
  );
}

const SETTINGS: readonly (readonly [file: string, value: string, advice: string])[] = [
  ['user/max_user_namespaces', '0', 'user namespaces are off: sysctl -w user.max_user_namespaces=10000'],
  [
    'kernel/unprivileged_userns_clone',
    '0',
    'user namespaces are off: sysctl -w kernel.unprivileged_userns_clone=1',
  ],
  [
    'kernel/apparmor_restrict_unprivileged_userns',
    '1',
    'AppArmor denies user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give bwrap a profile',
  ],
];

/** The settings of the kernel that may be why bwrap cannot make a user namespace, each with what to do. */
export async function explainUserNamespaces(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [file, value, advice] of SETTINGS) {
    const text = await readFile(join('/proc/sys', file), 'utf8').catch(() => '');
    if (text.trim() === value) found.push(advice);
  }
  return found;
}
