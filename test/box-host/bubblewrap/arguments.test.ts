import { describe, expect, it } from 'vitest';
import {
  type BoxArguments,
  boxArguments,
  encodeArguments,
} from '../../../src/box-host/bubblewrap/arguments.ts';

const box: BoxArguments = {
  root: '/run/boxes/one/root',
  hostUsr: undefined,
  programs: undefined,
  sharedMemoryBytes: 4096,
  hostname: 'box',
  environment: { A: '1', B: 'two words' },
  seccompDescriptor: 4,
};

/** The values that follow each occurrence of the option. */
function valuesOf(args: readonly string[], option: string, count: number): readonly (readonly string[])[] {
  return args.flatMap((one, index) => (one === option ? [args.slice(index + 1, index + 1 + count)] : []));
}

describe('the options of bwrap', () => {
  it('take every namespace but that of the network, which was entered before', () => {
    const names = boxArguments(box).filter((one) => one.startsWith('--unshare'));
    expect(names).toEqual([
      '--unshare-user',
      '--unshare-pid',
      '--unshare-ipc',
      '--unshare-uts',
      '--unshare-cgroup',
    ]);
  });

  it.each(['--disable-userns', '--die-with-parent', '--new-session', '--clearenv'])('contain %s', (option) =>
    expect(boxArguments(box)).toContain(option),
  );

  it('drop every capability and load the filter', () => {
    expect(valuesOf(boxArguments(box), '--cap-drop', 1)).toEqual([['ALL']]);
    expect(valuesOf(boxArguments(box), '--seccomp', 1)).toEqual([['4']]);
  });

  it('bind nothing of the host but what the box was given', () => {
    const args = boxArguments(box);
    expect(valuesOf(args, '--bind', 2)).toEqual([['/run/boxes/one/root', '/']]);
    expect(args.filter((one) => /^--(ro-bind|dev-bind|bind-try)/.test(one))).toEqual([]);
  });

  it('bind /usr read-only and hide what only root may read', () => {
    const hidden = [
      { path: '/usr/closed', isDirectory: true },
      { path: '/usr/secret', isDirectory: false },
    ];
    const args = boxArguments({ ...box, hostUsr: { hidden }, programs: '/run/boxes/.programs' });
    expect(valuesOf(args, '--ro-bind', 2)).toEqual([
      ['/usr', '/usr'],
      ['/dev/null', '/usr/secret'],
      ['/run/boxes/.programs', '/.sallyport'],
    ]);
    expect(valuesOf(args, '--tmpfs', 1)).toEqual([['/usr/closed'], ['/dev/shm']]);
    expect(valuesOf(args, '--remount-ro', 1)).toEqual([['/usr/closed'], ['/dev']]);
  });

  it('bound every tmpfs', () => {
    const args = boxArguments({ ...box, hostUsr: { hidden: [{ path: '/usr/closed', isDirectory: true }] } });
    expect(valuesOf(args, '--size', 1)).toHaveLength(valuesOf(args, '--tmpfs', 1).length);
  });

  it('set the environment', () => {
    expect(valuesOf(boxArguments(box), '--setenv', 2)).toEqual([
      ['A', '1'],
      ['B', 'two words'],
    ]);
  });
});

describe('encodeArguments', () => {
  it('ends each with a NUL', () => expect(encodeArguments(['a', '', 'ü'])).toBe('a\0\0ü\0'));

  it('refuses a NUL, which would begin another option', () => {
    const environment = { A: 'x\0--bind\0/\0/host' };
    expect(() => encodeArguments(boxArguments({ ...box, environment }))).toThrow(/contains a NUL/);
  });

  it('refuses more than bwrap takes', () => {
    expect(() => encodeArguments(Array.from({ length: 9000 }, () => 'a'))).toThrow(/at most 2900 variables/);
  });
});
