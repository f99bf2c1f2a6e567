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

const I386 = 0x40000003;
const LAST_KNOWN = 471;

/** What Docker documents as denied by its default profile without capabilities, with the numbers of both kernels. */
const denied: readonly (readonly [name: string, x64: number, arm64: number | undefined])[] = [
  ['acct', 163, 89],
  ['add_key', 248, 217],
  ['bpf', 321, 280],
  ['chroot', 161, 51],
  ['clock_settime', 227, 112],
  ['create_module', 174, undefined],
  ['delete_module', 176, 106],
  ['fanotify_init', 300, 262],
  ['finit_module', 313, 273],
  ['fsconfig', 431, 431],
  ['fsmount', 432, 432],
  ['fsopen', 430, 430],
  ['fspick', 433, 433],
  ['get_kernel_syms', 177, undefined],
  ['get_mempolicy', 239, 236],
  ['init_module', 175, 105],
  ['io_uring_enter', 426, 426],
  ['io_uring_register', 427, 427],
  ['io_uring_setup', 425, 425],
  ['ioperm', 173, undefined],
  ['iopl', 172, undefined],
  ['kcmp', 312, 272],
  ['kexec_file_load', 320, 294],
  ['kexec_load', 246, 104],
  ['keyctl', 250, 219],
  ['lookup_dcookie', 212, 18],
  ['mbind', 237, 235],
  ['mount', 165, 40],
  ['mount_setattr', 442, 442],
  ['move_mount', 429, 429],
  ['move_pages', 279, 239],
  ['nfsservctl', 180, 42],
  ['open_by_handle_at', 304, 265],
  ['open_tree', 428, 428],
  ['open_tree_attr', 467, 467],
  ['perf_event_open', 298, 241],
  ['pidfd_getfd', 438, 438],
  ['pivot_root', 155, 41],
  ['process_madvise', 440, 440],
  ['query_module', 178, undefined],
  ['quotactl', 179, 60],
  ['quotactl_fd', 443, 443],
  ['reboot', 169, 142],
  ['request_key', 249, 218],
  ['set_mempolicy', 238, 237],
  ['setdomainname', 171, 162],
  ['sethostname', 170, 161],
  ['setns', 308, 268],
  ['settimeofday', 164, 170],
  ['swapoff', 168, 225],
  ['swapon', 167, 224],
  ['_sysctl', 156, undefined],
  ['sysfs', 139, undefined],
  ['syslog', 103, 116],
  ['umount2', 166, 39],
  ['unshare', 272, 97],
  ['uselib', 134, undefined],
  ['userfaultfd', 323, 282],
  ['ustat', 136, undefined],
  ['vhangup', 153, 58],
];

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
    const special = new Set(['clone', 'socket', 'personality'].map(numberOf));
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
