// The resource limits that each process of a box begins with. What a box would inherit is what the box host was started with.
import { readFileSync } from 'node:fs';

/**
 * One byte: no core file is that short, and for this limit alone the kernel does not start a crash handler that core dumps are
 * piped to (fs/coredump.c). For 0 it does: a box could run that program of the host, as root, with input of its choice.
 */
const CORE_BYTES = 1;
/** Programs that use select() fail with more; others raise the limit themselves. */
const OPEN_FILES = 1_024;
const MAX_OPEN_FILES = 65_536;
/** Of capabilities(7): its bit. Without it, no limit can be raised. */
const CAP_SYS_RESOURCE = 24n;

export type OwnLimits = {
  /** /proc/self/limits */
  readonly limits: string;
  /** /proc/self/status */
  readonly status: string;
};

export type ProcessLimits = {
  /** Of its user. */
  readonly processes?: number | undefined;
  readonly openFiles?: number | undefined;
  /** Of its private memory that can be written. */
  readonly dataBytes?: number | undefined;
  /** Of one file. */
  readonly fileBytes?: number | undefined;
};

/** Options of prlimit. */
export function limitOptions(
  { processes, openFiles = MAX_OPEN_FILES, dataBytes, fileBytes }: ProcessLimits,
  own: OwnLimits = readOwn(),
): readonly string[] {
  const upTo = (value: number, name: string): number =>
    canRaise(own) ? value : Math.min(value, hardLimit(own, name));
  const files = upTo(openFiles, 'Max open files');
  return [
    `--core=${upTo(CORE_BYTES, 'Max core file size')}`,
    `--nofile=${Math.min(OPEN_FILES, files)}:${files}`,
    ...(processes === undefined ? [] : [`--nproc=${processes}`]),
    ...(dataBytes === undefined ? [] : [`--data=${upTo(dataBytes, 'Max data size')}`]),
    ...(fileBytes === undefined ? [] : [`--fsize=${upTo(fileBytes, 'Max file size')}`]),
  ];
}

function readOwn(): OwnLimits {
  return {
    limits: readFileSync('/proc/self/limits', 'utf8'),
    status: readFileSync('/proc/self/status', 'utf8'),
  };
}

/** `Max open files            1024                 1048576              files`. */
function hardLimit({ limits }: OwnLimits, name: string): number {
  const found = limits.split('\n').find((line) => line.startsWith(`${name} `));
  const [, hard = ''] = found?.slice(name.length).trim().split(/ +/) ?? [];
  return /^\d+$/.test(hard) ? Number(hard) : Number.POSITIVE_INFINITY;
}

function canRaise({ status }: OwnLimits): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n;
}
