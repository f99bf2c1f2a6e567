import { describe, expect, it } from 'vitest';
import { arm64Syscalls } from '../../../../src/box-host/bubblewrap/seccomp/arm64-syscalls.ts';
import { encodeProgram, result, when } from '../../../../src/box-host/bubblewrap/seccomp/bpf.ts';
import {
  ALLOW,
  compileFilter,
  DENY,
  encodeFilter,
  KILL_PROCESS,
  NOT_IMPLEMENTED,
  UNSUPPORTED_FAMILY,
} from '../../../../src/box-host/bubblewrap/seccomp/filter.ts';
import { x64Syscalls } from '../../../../src/box-host/bubblewrap/seccomp/x64-syscalls.ts';
import { runFilter } from './bpf-interpreter.ts';
import { denied } from './denied-calls.ts';

const I386 = 0x40000003;
const LAST_KNOWN = 471;

/** What programs of a box cannot do without. */
const needed = [
  'read',
  'execve',
  'futex',
  'epoll_pwait',
  'mmap',
  'statx',
  'pidfd_open',
  'ptrace',
  'close_range',
];

describe.each([
  ['x64', x64Syscalls],
  ['arm64', arm64Syscalls],
] as const)('the filter for %s', (name, table) => {
  const { architecture, numbers } = table;
  const program = encodeProgram(compileFilter(table));
  const run = (number: number, ...args: readonly bigint[]): number =>
    runFilter(program, { architecture, number, args });
  const numberOf = (call: string): number => {
    const number = numbers.get(call);
    if (number === undefined) throw new Error(`no ${call}`);
    return number;
  };

  it('is what encodeFilter gives', () => expect(encodeFilter(name)).toEqual(program));

  it.each(denied.filter(([, x64, arm64]) => (name === 'x64' ? x64 : arm64) !== undefined))(
    'denies %s',
    (_, x64, arm64) => {
      expect(run(name === 'x64' ? x64 : (arm64 ?? 0))).toBe(DENY);
    },
  );

  it.each(needed)('allows %s', (call) => expect(run(numberOf(call))).toBe(ALLOW));

  it('allows the numbers of the table and no other', () => {
    const listed = new Set(numbers.values());
    expect(listed.size).toBe(numbers.size);
    const special = new Set(['clone', 'socket', 'socketpair', 'personality'].map(numberOf));
    for (let number = 0; number < 1_000; number += 1) {
      if (special.has(number) || number === 435) continue;
      const expected = listed.has(number) ? ALLOW : number > LAST_KNOWN ? NOT_IMPLEMENTED : DENY;
      expect([number, run(number)]).toEqual([number, expected]);
    }
  });

  it('kills a process that calls as another architecture', () => {
    const other = name === 'x64' ? arm64Syscalls : x64Syscalls;
    for (const foreign of [I386, other.architecture, 0])
      expect(runFilter(program, { architecture: foreign, number: numberOf('read') })).toBe(KILL_PROCESS);
  });

  it('reports clone3 as missing, so that libraries use clone', () => {
    expect(run(435, 0n)).toBe(NOT_IMPLEMENTED);
  });

  it.each([
    ['a process', 17n, ALLOW],
    ['a thread', 0x3d0f00n, ALLOW],
    ['a mount namespace', 0x20011n, DENY],
    ['a cgroup namespace', 0x2000011n, DENY],
    ['a UTS namespace', 0x4000011n, DENY],
    ['an IPC namespace', 0x8000011n, DENY],
    ['a user namespace', 0x10000011n, DENY],
    ['a pid namespace', 0x20000011n, DENY],
    ['a network namespace', 0x40000011n, DENY],
    ['every namespace', 0x7e020011n, DENY],
    ['a user namespace, with bits that the kernel ignores', 0xffffffff10000011n, DENY],
  ])('decides about clone for %s', (_, flags, expected) => {
    expect(run(numberOf('clone'), flags)).toBe(expected);
  });

  it('allows four families of sockets, whatever the upper half of the argument', () => {
    for (let family = 0n; family < 64n; family += 1n)
      for (const upper of [0n, 1n << 32n, 0xffffffffn << 32n]) {
        const expected = [1n, 2n, 10n, 16n].includes(family) ? ALLOW : UNSUPPORTED_FAMILY;
        expect([family, run(numberOf('socket'), family | upper)]).toEqual([family, expected]);
      }
  });

  it('allows pairs of UNIX sockets alone, whatever the upper half of the argument', () => {
    for (let family = 0n; family < 64n; family += 1n)
      for (const upper of [0n, 1n << 32n, 0xffffffffn << 32n]) {
        const expected = family === 1n ? ALLOW : UNSUPPORTED_FAMILY;
        expect([family, run(numberOf('socketpair'), family | upper)]).toEqual([family, expected]);
      }
  });

  it.each([
    [0n, ALLOW],
    [8n, ALLOW],
    [0x20000n, ALLOW],
    [0x20008n, ALLOW],
    [0xffffffffn, ALLOW],
    [0x0040000n, DENY],
    [0x0400000n, DENY],
    [0x1_0040000n, DENY],
  ])('decides about personality %s', (persona, expected) => {
    expect(run(numberOf('personality'), persona)).toBe(expected);
  });

  it.each([
    ['setrlimit', [4n, 0x7000n], DENY],
    ['setrlimit', [0xffffffff00000004n, 0x7000n], DENY],
    ['setrlimit', [7n, 0x7000n], ALLOW],
    ['prlimit64', [0n, 4n, 0x7000n, 0n], DENY],
    ['prlimit64', [17n, 0xffffffff00000004n, 0x7f0000000000n, 0x7000n], DENY],
    ['prlimit64', [0n, 4n, 0n, 0x7000n], ALLOW],
    ['prlimit64', [0n, 7n, 0x7000n, 0n], ALLOW],
  ] as const)('lets no program change the limit of core files: %s %s', (call, args, expected) => {
    expect(run(numberOf(call), ...args)).toBe(expected);
  });
});

describe('the filter', () => {
  it('kills a process that calls by x32', () => {
    const program = encodeProgram(compileFilter(x64Syscalls));
    const { architecture } = x64Syscalls;
    for (const number of [0x40000000, 0x40000001, 0xffffffff])
      expect(runFilter(program, { architecture, number })).toBe(KILL_PROCESS);
  });

  it('is undefined for an architecture without a table', () =>
    expect(encodeFilter('riscv64')).toBeUndefined());

  it('has the same numbers on both architectures from 424 on', () => {
    const late = ({ numbers }: typeof x64Syscalls) => [...numbers].filter(([, number]) => number >= 424);
    expect(late(x64Syscalls)).toEqual(late(arm64Syscalls));
  });

  it('is refused when a jump is too long', () => {
    expect(() =>
      when(
        0x15,
        0,
        Array.from({ length: 256 }, () => result(ALLOW)),
      ),
    ).toThrow(/256 instructions/);
  });
});
