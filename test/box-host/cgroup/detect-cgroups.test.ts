import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detectCgroups } from '../../../src/box-host/cgroup/detect-cgroups.ts';
import { missing, titled } from '../isolation.ts';

let count = 0;
const freshName = (): string => `sallyport-test-${process.pid}-${++count}`;

/** A shell that joins the group before it runs the script. */
function runWithin(files: readonly string[], script: string) {
  const join = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"';
  return spawn('/bin/sh', ['-c', join, 'sh', ...files, '--', '/bin/sh', '-c', script], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

describe.skipIf(missing !== undefined)(titled('the cgroups of this machine'), () => {
  it('limit the number of processes', async () => {
    const cgroups = await detectCgroups(freshName());
    await cgroups.create('one', { pids: 5 });
    const child = runWithin(
      cgroups.entryFiles('one'),
      'for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait',
    );
    const [code] = (await once(child, 'exit')) as [number | null];
    // The shell cannot fork, and ends; what it started lives on.
    expect(code).toBe(2);
    expect((await cgroups.usage('one')).pids).toBeLessThanOrEqual(5);
    expect((await cgroups.events('one')).refusedForks).toBeGreaterThan(0);
    await cgroups.remove('one');
    await cgroups.close();
  });

  it('kill a process that takes more memory', async () => {
    const cgroups = await detectCgroups(freshName());
    await cgroups.create('one', { memBytes: 32 * 1024 * 1024 });
    const child = runWithin(cgroups.entryFiles('one'), 'exec /usr/bin/python3 -c "x = bytearray(256 << 20)"');
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    expect([code, signal]).toEqual([null, 'SIGKILL']);
    expect((await cgroups.events('one')).oomKills).toBe(1);
    await cgroups.remove('one');
    await cgroups.close();
  });

  it('count memory, processes and processor time', async () => {
    const cgroups = await detectCgroups(freshName());
    await cgroups.create('one', { memBytes: 64 * 1024 * 1024, cpuMillicores: 500, pids: 50 });
    const script = 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; read end';
    const child = runWithin(cgroups.entryFiles('one'), script);
    await once(child.stdout, 'data');
    const usage = await cgroups.usage('one');
    expect(usage.pids).toBe(1);
    expect(usage.memBytes).toBeGreaterThan(0);
    expect(usage.cpuMs).toBeGreaterThan(0);
    await cgroups.remove('one');
    await cgroups.close();
  });

  it('are removed with everything that runs in them, and leave no directory', async () => {
    const cgroups = await detectCgroups(freshName());
    await cgroups.create('one', { pids: 50 });
    const files = cgroups.entryFiles('one');
    const child = runWithin(files, 'sleep 600 & sleep 600 & echo ready; sleep 600');
    await once(child.stdout, 'data');
    await Promise.all([cgroups.remove('one'), once(child, 'exit')]);
    await cgroups.close();
    expect(child.signalCode).toBe('SIGKILL');
    expect(files.map((file) => existsSync(dirname(dirname(file))))).toEqual(files.map(() => false));
  });

  it('are emptied, and stay', async () => {
    const cgroups = await detectCgroups(freshName());
    await cgroups.create('one', { pids: 50 });
    const files = cgroups.entryFiles('one');
    const child = runWithin(files, 'setsid sleep 600 & sleep 600 & echo ready; sleep 600');
    const exited = once(child, 'exit');
    await once(child.stdout, 'data');
    await cgroups.empty('one');
    await exited;
    expect(await Promise.all(files.map((file) => readFile(file, 'utf8')))).toEqual(files.map(() => ''));
    await cgroups.empty('none');
    await cgroups.remove('one');
    await cgroups.close();
  });

  it('take other limits, of memory with what is swapped out', async () => {
    const cgroups = await detectCgroups(freshName());
    const [file = ''] = cgroups.entryFiles('one').filter((one) => /memory|unified/.test(one));
    const v1 = ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes', 'memory.kmem.tcp.limit_in_bytes'];
    const read = (name: string) =>
      readFile(join(dirname(file), name), 'utf8').then((text) => Number(text) || text.trim());
    const limits = async () =>
      cgroups.version === 'v1'
        ? (await Promise.all(v1.map(read))).map((one) => (Number(one) > 2 ** 50 ? 'none' : one))
        : [await read('memory.max'), await read('memory.max'), await read('memory.max')];
    for (const mebibytes of [64, 32, 256]) {
      await cgroups.create('one', { memBytes: mebibytes * 2 ** 20 });
      expect(await limits()).toEqual(v1.map(() => mebibytes * 2 ** 20));
    }
    await cgroups.create('one', {});
    expect(await limits()).toEqual(v1.map(() => (cgroups.version === 'v1' ? 'none' : 'max')));
    await cgroups.remove('one');
    await cgroups.close();
  });

  it('end what has more memory than a lower limit allows', async () => {
    const cgroups = await detectCgroups(freshName());
    await cgroups.create('one', { memBytes: 256 * 2 ** 20 });
    const script =
      'exec /usr/bin/python3 -c "x = bytearray(b\'x\') * (128 << 20); print(1, flush=True); input()"';
    const child = runWithin(cgroups.entryFiles('one'), script);
    await once(child.stdout, 'data');
    const exited = once(child, 'exit');
    await cgroups.create('one', { memBytes: 32 * 2 ** 20 });
    expect(await exited).toEqual([null, 'SIGKILL']);
    await cgroups.remove('one');
    await cgroups.close();
  });

  it('of a process that was killed are found by their name and swept', async () => {
    const name = freshName();
    const before = await detectCgroups(name);
    await before.create('left', { pids: 50 });
    const child = runWithin(before.entryFiles('left'), 'echo ready; sleep 600');
    await once(child.stdout, 'data');
    const after = await detectCgroups(name);
    await Promise.all([after.sweep(), once(child, 'exit')]);
    expect(before.entryFiles('left').map((file) => existsSync(file))).not.toContain(true);
    await after.close();
  });

  it('never contain this process', async () => {
    const name = freshName();
    const cgroups = await detectCgroups(name);
    await cgroups.create('one', { pids: 5 });
    expect(await readFile('/proc/self/cgroup', 'utf8')).not.toContain(name);
    await cgroups.remove('one');
    await cgroups.close();
  });
});
