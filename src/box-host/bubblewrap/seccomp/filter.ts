// The seccomp filter of every box. It denies what Docker's default profile denies to a process without capabilities, and
// more: calls of another architecture, families of sockets that a box has no use for, namespaces in any form.
import {
  and,
  ARCHITECTURE_OFFSET,
  encodeProgram,
  type Instruction,
  JUMP_AT_LEAST,
  JUMP_EQUAL,
  JUMP_GREATER,
  load,
  loadArgument,
  loadUpperHalf,
  NUMBER_OFFSET,
  result,
  unless,
  when,
} from './bpf.ts';
import { arm64Syscalls } from './arm64-syscalls.ts';
import type { SyscallTable } from './syscall-table.ts';
import { x64Syscalls } from './x64-syscalls.ts';

export const ALLOW = 0x7fff0000;
export const KILL_PROCESS = 0x80000000;
const ERRNO = 0x00050000;
export const DENY: number = ERRNO | 1; // EPERM
/** Programs take it for an older kernel and use the older call. */
export const NOT_IMPLEMENTED: number = ERRNO | 38; // ENOSYS
export const UNSUPPORTED_FAMILY: number = ERRNO | 97; // EAFNOSUPPORT

/** CLONE_NEW*: NS, CGROUP, UTS, IPC, USER, PID, NET. */
const NAMESPACE_FLAGS = 0x7e020000;

const AF_UNIX = 1;

/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. The code of the other families is seldom used and often vulnerable. */
const SOCKET_FAMILIES: readonly number[] = [AF_UNIX, 2, 10, 16];

/** PER_LINUX, PER_LINUX32, UNAME26 with either, and the question for the current one. */
const PERSONALITIES: readonly number[] = [0, 8, 0x20000, 0x20008, 0xffffffff];

/** RLIMIT_CORE, on every architecture. Who lowers it from 1 to 0 has its crashes handled by a program of the host: see `limitOptions`. */
const CORE_LIMIT = 4;

/** The same number on every architecture. */
const CLONE3 = 435;
/** The newest call that this filter has a decision about. */
const LAST_KNOWN = 471;

const tables: Readonly<Record<string, SyscallTable>> = { x64: x64Syscalls, arm64: arm64Syscalls };

/** The filter for `process.arch`, as bwrap reads it; undefined for an architecture without a table. */
export function encodeFilter(architecture: string): Uint8Array | undefined {
  const table = tables[architecture];
  return table && encodeProgram(compileFilter(table));
}

export function compileFilter(table: SyscallTable): readonly Instruction[] {
  const { architecture, foreignFrom, numbers } = table;
  return [
    load(ARCHITECTURE_OFFSET),
    ...unless(JUMP_EQUAL, architecture, [result(KILL_PROCESS)]),
    load(NUMBER_OFFSET),
    ...(foreignFrom === undefined ? [] : when(JUMP_AT_LEAST, foreignFrom, [result(KILL_PROCESS)])),
    // The flags of clone3 lie in memory, where a filter cannot read them.
    ...when(JUMP_EQUAL, CLONE3, [result(NOT_IMPLEMENTED)]),
    ...checked(numbers, 'clone', [
      loadArgument(0),
      and(NAMESPACE_FLAGS),
      ...when(JUMP_EQUAL, 0, [result(ALLOW)]),
      result(DENY),
    ]),
    ...checked(numbers, 'socket', oneOf(SOCKET_FAMILIES, UNSUPPORTED_FAMILY)),
    // It makes sockets of a family too, and loads the code of the family for that.
    ...checked(numbers, 'socketpair', oneOf([AF_UNIX], UNSUPPORTED_FAMILY)),
    ...checked(numbers, 'personality', oneOf(PERSONALITIES, DENY)),
    ...checked(numbers, 'setrlimit', [
      loadArgument(0),
      ...when(JUMP_EQUAL, CORE_LIMIT, [result(DENY)]),
      result(ALLOW),
    ]),
    ...checked(numbers, 'prlimit64', [
      loadArgument(1),
      ...unless(JUMP_EQUAL, CORE_LIMIT, [result(ALLOW)]),
      // A pointer to the new limit: without one, the call reads.
      ...[loadArgument(2), ...unless(JUMP_EQUAL, 0, [result(DENY)])],
      ...[loadUpperHalf(2), ...unless(JUMP_EQUAL, 0, [result(DENY)])],
      result(ALLOW),
    ]),
    ...rangesOf([...numbers.values()]).flatMap(allowRange),
    ...when(JUMP_GREATER, LAST_KNOWN, [result(NOT_IMPLEMENTED)]),
    result(DENY),
  ];
}

/** `block` decides about the call; it ends the program on every path. */
function checked(
  numbers: SyscallTable['numbers'],
  name: string,
  block: readonly Instruction[],
): readonly Instruction[] {
  const number = numbers.get(name);
  if (number === undefined) throw new Error(`the table has no ${name}`);
  return when(JUMP_EQUAL, number, block);
}

function oneOf(values: readonly number[], otherwise: number): readonly Instruction[] {
  return [
    loadArgument(0),
    ...values.flatMap((value) => when(JUMP_EQUAL, value, [result(ALLOW)])),
    result(otherwise),
  ];
}

type Range = { readonly first: number; readonly last: number };

/** The numbers as runs without gaps, ascending. */
function rangesOf(numbers: readonly number[]): readonly Range[] {
  const ranges: { first: number; last: number }[] = [];
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const open = ranges.at(-1);
    if (open?.last === number - 1) open.last = number;
    else ranges.push({ first: number, last: number });
  }
  return ranges;
}

function allowRange({ first, last }: Range): readonly Instruction[] {
  return when(JUMP_AT_LEAST, first, unless(JUMP_GREATER, last, [result(ALLOW)]));
}
