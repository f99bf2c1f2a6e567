// What the kernel would write of the process's memory, as the kernel itself tells it.
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createScratch } from '../../support/scratch.ts';
import { program, projectRoot, runToEnd, SpawnedProcess } from '../../support/spawned-process.ts';

const softLimit = (limits: string): string | undefined => /^Max core file size +(\S+)/m.exec(limits)?.[1];
/** A shell that lets its programs write cores of any size, and becomes the program. */
const withCores = (...command: readonly string[]): string[] => [
  '-c',
  'ulimit -S -c "$(ulimit -H -c)"; exec "$0" "$@"',
  ...command,
];

describe.runIf(process.platform === 'linux')('no core holds the memory of', () => {
  it('a proxy writes no core, started where cores are written in full', async () => {
    await using scratch = await createScratch();
    const command = withCores(process.execPath, program, 'proxy', '--listen', '127.0.0.1:0');
    await using child = new SpawnedProcess('/bin/sh', command, {
      env: { SALLYPORT_STATE_DIR: scratch.path, SALLYPORT_ADMIN_LISTEN: 'off' },
    });
    const { pid } = await child.record(({ msg }) => msg === 'ready');
    expect(softLimit(readFileSync(`/proc/${pid}/limits`, 'utf8'))).toBe('0');
    expect(Number.parseInt(readFileSync(`/proc/${pid}/coredump_filter`, 'utf8'), 16)).toBe(0);
    expect(child.records.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('a proxy with handed-over secrets writes no core, and the program that sets its limit gets no secret', async () => {
    await using scratch = await createScratch();
    const reported = join(scratch.path, 'reported');
    const fake = await scratch.write(
      'prlimit',
      `#!/bin/sh\nenv > '${reported}'\nexec /usr/bin/prlimit "$@"\n`,
    );
    chmodSync(fake, 0o700);
    const command = withCores(process.execPath, program, 'proxy', '--listen', '127.0.0.1:0');
    await using child = new SpawnedProcess('/bin/sh', command, {
      env: {
        PATH: `${scratch.path}:${process.env['PATH']}`,
        SALLYPORT_STATE_DIR: scratch.path,
        SALLYPORT_ADMIN_LISTEN: 'off',
        SALLYPORT_SECRET_TOKEN: 'sesame-open-now',
      },
    });
    const { pid } = await child.record(({ msg }) => msg === 'ready');
    expect(softLimit(readFileSync(`/proc/${pid}/limits`, 'utf8'))).toBe('0');
    expect(readFileSync(reported, 'utf8')).toContain('PATH=');
    expect(readFileSync(reported, 'utf8')).not.toMatch(/SALLYPORT|sesame/);
  });

  it('`run` writes no core, while its command keeps the original filter', async () => {
    const rules = join(projectRoot, 'config', 'proxy-config.example.json');
    // `run` restores its own filter after the start of its command, which may be faster.
    const parent = '"/proc/$PPID/coredump_filter"';
    const wait = `until grep -qx 00000000 ${parent}; do :; done`;
    const show = ['sh', '-c', `cat /proc/self/coredump_filter; ${wait}; cat ${parent}`];
    const { code, stdout } = await runToEnd(
      '/bin/sh',
      [
        '-c',
        'echo 0x7 > /proc/self/coredump_filter; exec "$0" "$@"',
        ...[process.execPath, program, 'run', '--proxy-config', rules, '--', ...show],
      ],
      { env: { SALLYPORT_SECRET_DEMO_TOKEN: 'a-token-of-the-example' } },
    );
    expect([code, stdout]).toEqual([0, '00000007\n00000000\n']);
  });
});
