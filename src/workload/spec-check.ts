// Checks what a workload is started with before anything is made for it. Whoever starts it is a program of ours: what is wrong is a bug or
// a setting of the machine, and is named.
import { realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, normalize } from 'node:path';
import { isSandboxId } from '../base/sandbox-id.ts';
import { VARIABLE_NAME } from './program/begin-script.ts';
import type { WorkloadIsolation, WorkloadMount, WorkloadSpec } from './workload.ts';

/** Of one variable and of one argument, by the kernel. */
const MAX_STRING_BYTES = 128 * 1024 - 1;
const MAX_ENVIRONMENT_BYTES = 1024 * 1024;
/** What is mounted there already, or belongs to the system. */
const RESERVED: readonly string[] = [
  '/usr',
  '/etc',
  '/proc',
  '/dev',
  '/sys',
  '/bin',
  '/sbin',
  '/lib',
  '/lib64',
];
const EXACT: readonly string[] = ['/', '/tmp', '/var', '/var/tmp', '/home', '/run'];

/** Throws a TypeError that names what is wrong. */
export function checkSpec(spec: WorkloadSpec, isolation: WorkloadIsolation): void {
  if (!isSandboxId(spec.id)) throw new TypeError('id: must be 1 to 63 of a to z, 0 to 9 and -');
  if (spec.command.length === 0) throw new TypeError('command: must not be empty');
  for (const one of [...spec.command, spec.cwd]) checkText('command', one);
  if (!isAbsolute(spec.cwd)) throw new TypeError('cwd: must be absolute');
  checkEnvironment(spec.env);
  for (const mount of spec.mounts) checkMount(mount, isolation);
  for (const [name, limit] of [...Object.entries(spec.limits), ['timeoutMs', spec.timeoutMs] as const])
    if (limit !== undefined && !(Number.isSafeInteger(limit) && limit > 0))
      throw new TypeError(`${name}: must be a whole number above 0`);
}

function checkEnvironment(env: WorkloadSpec['env']): void {
  let bytes = 0;
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE_NAME.test(name)) throw new TypeError('env: a name must be letters, digits and _');
    checkText(`env.${name}`, value);
    bytes += name.length + Buffer.byteLength(value);
  }
  if (bytes > MAX_ENVIRONMENT_BYTES)
    throw new TypeError(`env: must have at most ${MAX_ENVIRONMENT_BYTES} bytes`);
}

function checkText(name: string, text: string): void {
  if (text.includes('\0')) throw new TypeError(`${name}: must not contain NUL`);
  if (Buffer.byteLength(text) > MAX_STRING_BYTES)
    throw new TypeError(`${name}: must have at most ${MAX_STRING_BYTES} bytes`);
}

function checkMount({ source, target }: WorkloadMount, isolation: WorkloadIsolation): void {
  for (const path of [source, target])
    if (
      !isAbsolute(path) ||
      normalize(path) !== path ||
      path.includes('\0') ||
      (path.endsWith('/') && path !== '/')
    )
      throw new TypeError(`mounts: ${path} must be an absolute path without dots`);
  if (isolation !== 'bubblewrap') {
    if (source !== target)
      throw new TypeError(`mounts: ${target} must be ${source}, because mounts are not possible`);
    return;
  }
  const isReserved = RESERVED.some((one) => target === one || target.startsWith(`${one}/`));
  if (isReserved || EXACT.includes(target)) throw new TypeError(`mounts: ${target} belongs to the system`);
}

const OTHERS_ENTER = 0o001;

/** Rejects with an Error. A link that is followed as root, or a directory that nobody may enter, would be noticed too late. */
export async function checkSources(
  mounts: readonly WorkloadMount[],
  isolation: WorkloadIsolation,
): Promise<void> {
  for (const { source } of mounts) {
    if ((await realpath(source)) !== source)
      throw new Error(`mounts: ${source} leads through a symbolic link`);
    if (isolation === 'user') await requireEnterable(dirname(source));
  }
}

/** Rejects with an Error that says what to do unless every user of the machine can enter `directory`. */
export async function requireEnterable(directory: string): Promise<void> {
  for (let path = directory; ; path = dirname(path)) {
    const { mode } = await stat(path);
    if ((mode & OTHERS_ENTER) === 0)
      throw new Error(
        `${path} cannot be entered by other users of this machine, as programs run by: chmod o+x it, or use another directory`,
      );
    if (path === dirname(path)) return;
  }
}
