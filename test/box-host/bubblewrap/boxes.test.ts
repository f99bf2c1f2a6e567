import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../../support/spawned-process.ts';
import { createScratch } from '../../support/scratch.ts';
import { denied } from './seccomp/denied-calls.ts';
import { missing, recordRun, titled } from '../isolation.ts';
import {
  createTestBoxes,
  MEGABYTE,
  newBox,
  openBoxes,
  runInBox,
  runProgram,
  startInBox,
} from './test-boxes.ts';

/** Processes of the host that run as this user. Of those that ended, init may not know yet. */
function processesOf(uid: number | undefined): readonly string[] {
  return execFileSync('ps', ['-e', '-o', 'uid=,pid=,stat=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.trim().startsWith(`${uid} `) && !/ Z\w* /.test(line));
}

function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
}

describe.skipIf(missing !== undefined)(titled('a box'), { tags: 'long' }, () => {
  it('runs a program as a user without privileges, with one descriptor to us', async () => {
    recordRun('bubblewrap');
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const script =
      'id -u; grep -E "^(Cap|NoNew|Seccomp:)" /proc/self/status; ls /proc/self/fd | tr "\\n" " "';
    const { output, code } = await runInBox(box, script);
    expect(code).toBe(0);
    expect(output.split(/\s*\n/)).toEqual([
      '1000',
      ...['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) => `${name}:\t0000000000000000`),
      'NoNewPrivs:\t1',
      'Seccomp:\t2',
      '0 1 2 3 ',
    ]);
  });

  it('has the environment that it was given and nothing else', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const { output } = await runProgram(box, ['/bin/sh', '-c', 'env >&3'], {
      LD_PRELOAD: '/none',
      KEY: 'a b',
    });
    expect(output).toContain('KEY=a b\n');
    expect(output).toContain('HTTPS_PROXY=http://127.0.0.1:3128\n');
    expect(output).not.toContain('SALLYPORT');
    // Of the programs that run on the host before, none had it.
    expect(output.match(/none.*cannot be preloaded/g)?.length ?? 0).toBeLessThanOrEqual(1);
  });

  it('shows no variable of its own in the command lines of the host', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const program = await box.start(['/bin/sh', '-c', 'echo >&3; read end <&3'], {
      KEY: 'very-secret-value',
    });
    await once(program.channel, 'data');
    const uid = box.record.uid;
    expect(processesOf(uid).length).toBeGreaterThan(1);
    expect(processesOf(uid).join('\n')).not.toContain('very-secret-value');
    await program.end();
  });

  it('has a user of the host of its own', async () => {
    await using made = await createTestBoxes();
    const [one, two] = [await made.open('one'), await made.open('two')];
    expect(one.record.uid).not.toBe(two.record.uid);
    await startInBox(one, 'echo; sleep 600');
    expect(processesOf(one.record.uid).length).toBeGreaterThan(1);
    expect(processesOf(two.record.uid)).toEqual([]);
  });

  it('keeps its files over stop and start, in a file system of its size', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    expect(
      (await runInBox(box, 'echo kept >~/file; df -B1 --output=size / | tail -1')).output.trim(),
    ).toMatch(/^1[0-9]{7}$/);
    await box.stop();
    expect(await made.boxes.namespace.run('mount')).not.toMatchObject({
      stdout: expect.stringContaining('/one/'),
    });
    await box.open();
    expect((await runInBox(box, 'cat ~/file')).output).toBe('kept\n');
  });

  it('has the limits, the size and the certificates of its last start', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    await runInBox(box, 'echo kept >~/file');
    await startInBox(box, 'echo; sleep 600');
    const changed = {
      ...newBox('one'),
      limits: { pids: 20 },
      capacityBytes: 64 * MEGABYTE,
      caBundle: 'others\n',
    };
    expect(await made.boxes.create(changed)).toBe(box);
    await box.open();
    await box.program?.end();
    const script =
      'cat ~/file /etc/ssl/certs/ca-certificates.crt; df -B1 --output=size / | tail -1; for i in $(seq 30); do sleep 60 & done';
    const { output } = await runInBox(box, script);
    // Its files are mounted: they grow with the next start.
    expect(output).toMatch(/^kept\nothers\n\s*1\d{7}\n[^]*Cannot fork/);
    await box.stop();
    await made.boxes.create({ ...changed, limits: {} });
    await box.open();
    expect((await runInBox(box, script)).output).toMatch(/^kept\nothers\n\s*[56]\d{7}\n$/);
  });

  it.each([
    ['less than it has', { capacityBytes: 12 * MEGABYTE }, /cannot become smaller: it has 16777216/],
    ['another snapshot', { snapshotId: 'other' }, /cannot be changed: it has base/],
  ])('goes on when a start asks for %s', async (_, given, reason) => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    await expect(made.boxes.create({ ...newBox('one'), ...given })).rejects.toThrow(reason);
    expect((await runInBox(box, 'echo on')).output).toBe('on\n');
  });

  it('keeps its files and its user when the box host starts again', async () => {
    await using scratch = await createScratch();
    const before = await openBoxes(scratch.path);
    const box = await before.create(newBox('one'));
    await box.open();
    await runInBox(box, 'echo kept >~/file');
    const { uid } = box.record;
    await before[Symbol.asyncDispose]();
    const after = await openBoxes(scratch.path);
    expect(after.ids()).toEqual(['one']);
    const again = await after.create(newBox('one'));
    await again.open();
    expect([again.record.uid, (await runInBox(again, 'cat ~/file')).output]).toEqual([uid, 'kept\n']);
    await after.remove('one');
    expect(after.ids()).toEqual([]);
    await after[Symbol.asyncDispose]();
  });

  it('is removed with all that it had', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    await startInBox(box, 'sleep 600 & setsid sleep 600 & echo; sleep 600');
    const { uid } = box.record;
    await made.boxes.remove('one');
    expect(processesOf(uid)).toEqual([]);
    expect(await readdir(join(made.scratch.path, 'boxes'))).toEqual([]);
    expect((await made.boxes.namespace.run('cat /proc/mounts')).stdout).not.toContain('/one/');
    expect(execFileSync('losetup', ['-l'], { encoding: 'utf8' })).not.toContain(made.scratch.path);
    await made.boxes.remove('one');
  });

  it('that cannot be opened leaves nothing mounted, and can be opened when its snapshot is there again', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    await box.stop();
    const root = join(made.scratch.path, 'snapshots', 'base', 'root');
    await rename(root, `${root}.away`);
    await expect(box.open()).rejects.toThrow(/could not be mounted: .*exist/);
    expect((await made.boxes.namespace.run('cat /proc/mounts')).stdout).not.toContain('/one/');
    expect(execFileSync('losetup', ['-l'], { encoding: 'utf8' })).not.toContain(made.scratch.path);
    await rename(`${root}.away`, root);
    await box.open();
    expect((await runInBox(box, 'echo open')).output).toBe('open\n');
  });

  it('keeps its snapshot, also over a restart of the box host, until it is removed', async () => {
    await using scratch = await createScratch();
    const before = await openBoxes(scratch.path);
    await before.create(newBox('one'));
    await expect(before.snapshots.remove('base')).rejects.toThrow(/base is used: remove its boxes first/);
    await before[Symbol.asyncDispose]();
    await using after = await openBoxes(scratch.path);
    await expect(after.snapshots.remove('base')).rejects.toThrow(/is used/);
    await after.remove('one');
    await after.snapshots.remove('base');
    await expect(after.create(newBox('two'))).rejects.toThrow('There is no snapshot base');
    expect(after.ids()).toEqual([]);
  });

  it('is not made of a snapshot that is being removed, and one that is being made keeps its snapshot', async () => {
    await using made = await createTestBoxes();
    const { boxes } = made;
    const [created, removed] = await Promise.allSettled([
      boxes.create(newBox('one')),
      boxes.snapshots.remove('base'),
    ]);
    expect([created.status, removed.status]).toEqual(['fulfilled', 'rejected']);
    await boxes.remove('one');
    const [again, late] = await Promise.allSettled([
      boxes.snapshots.remove('base'),
      boxes.create(newBox('two')),
    ]);
    expect([again.status, late.status]).toEqual(['fulfilled', 'rejected']);
    expect(boxes.ids()).toEqual([]);
  });

  it('makes no mount that the host sees', async () => {
    await using made = await createTestBoxes();
    await made.open('one');
    const mounts = await readFile('/proc/self/mountinfo', 'utf8');
    expect(mounts).not.toContain('sallyport');
  });

  it('runs one program at a time, and another afterwards', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    await startInBox(box, 'echo; sleep 600');
    await expect(runInBox(box, 'true')).rejects.toThrow(/runs already/);
    await box.program?.end();
    expect((await runInBox(box, 'echo again')).output).toBe('again\n');
  });

  it('ends everything when its channel is destroyed', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    await startInBox(box, 'sleep 600 & echo; sleep 600');
    const { program } = box;
    program?.channel.destroy();
    await program?.exited;
    expect(processesOf(box.record.uid)).toEqual([]);
  });

  it.each([
    ['has just become bwrap', (pid: number) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'bwrap\n'],
    ['has made its namespaces', (pid: number) => childrenOf(pid).length > 0],
    ['has begun the program', (pid: number) => childrenOf(pid).flatMap(childrenOf).length > 0],
  ])('leaves nothing that runs when bwrap is killed that %s', async (_, isReached) => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const program = await box.start(['/bin/sh', '-c', 'sleep 600 & sleep 600'], {});
    const { pid = 0 } = program;
    while (!isReached(pid)) await new Promise((resolve) => setImmediate(resolve));
    process.kill(pid, 'SIGKILL');
    expect(await program.exited).toMatchObject({ signal: 'SIGKILL' });
    expect(processesOf(box.record.uid)).toEqual([]);
    expect((await runInBox(box, 'echo again')).output).toBe('again\n');
  });

  it('reports the last lines of a program that fails', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const failed = await runProgram(box, ['/bin/sh', '-c', 'echo too bad >&2; exit 3']);
    expect(failed).toMatchObject({ code: 3, lastLines: 'too bad\n' });
    const absent = await runProgram(box, ['/none']);
    expect(absent).toMatchObject({ code: 1, lastLines: expect.stringMatching(/execvp .none/) });
  });

  it('that writes a gigabyte to its standard error costs a few kilobytes', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const { lastLines, code } = await runProgram(box, ['/bin/sh', '-c', 'head -c 1000000000 /dev/zero >&2']);
    expect([code, lastLines.length]).toEqual([0, 4096]);
  });

  it('cannot lead the next start elsewhere by links where bwrap mounts', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const root = (await made.boxes.namespace.run('ls -d /run/sallyport-boxes/one/root')).stdout.trim();
    const target = join(made.scratch.path, 'elsewhere');
    await mkdir(target);
    await made.boxes.namespace.run('cd "$1"; rmdir .sallyport dev; ln -s "$2" .sallyport; ln -s "$2" dev', [
      root,
      target,
    ]);
    expect((await runInBox(box, 'ls -d /dev/null')).output).toBe('/dev/null\n');
    expect(await readdir(target)).toEqual([]);
  });

  it('takes programs of ours from a directory that other users cannot enter', async () => {
    await using scratch = await createScratch();
    const tool = join(scratch.path, 'tool');
    await writeFile(tool, '#!/bin/sh\necho run >&3\n', { mode: 0o755 });
    expect((await stat(scratch.path)).mode & 0o077).toBe(0);
    await using made = await createTestBoxes({ tool });
    const box = await made.open('one');
    expect((await runProgram(box, ['/.sallyport/tool'])).output).toBe('run\n');
  });

  it.each([
    ['a snapshot that is not there', { snapshotId: 'none' }, /no snapshot none/],
    ['less than an ext4 needs', { capacityBytes: 1024 }, /at least 8388608/],
    ['an id that is a path', { id: '../one' }, /id of a box/],
  ])('is refused for %s, and nothing is left', async (_, given, reason) => {
    await using made = await createTestBoxes();
    await expect(made.boxes.create({ ...newBox('one'), ...given })).rejects.toThrow(reason);
    expect(await readdir(join(made.scratch.path, 'boxes'))).toEqual([]);
  });
});

describe.skipIf(missing !== undefined)(titled('the limits of a box'), { tags: 'long' }, () => {
  it('are those of open files, whatever the box host has, and no crash starts a program of the host', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const { output } = await runInBox(
      box,
      'ulimit -S -c 0; grep -E "core file|open files" /proc/self/limits',
    );
    const lines = output.split('\n').map((one) => one.split(/ {2,}/).slice(0, 3).join(' | '));
    expect(lines).toContain('Max core file size | 1 | 1');
    const [, hard = ''] = /^Max open files \| 1024 \| (\d+)$/m.exec(lines.join('\n')) ?? [];
    expect(Number(hard)).toBeGreaterThan(0);
    // Or what the machine allows, where that is less.
    expect(Number(hard)).toBeLessThanOrEqual(65_536);
  });

  it('end a fork bomb at the number of processes', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one', { limits: { pids: 30 } });
    const bomb = 'i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; echo $i';
    // Outside, this many processes are no problem.
    const outside = spawn('/bin/sh', ['-c', `${bomb.replace('600', '5')}`], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    outside.stdout.setEncoding('utf8');
    expect(String((await once(outside.stdout, 'data'))[0])).toBe('200\n');
    const { output } = await runInBox(box, bomb);
    expect(output).toMatch(/Cannot fork/);
    expect((await box.usage()).pids).toBeLessThanOrEqual(30);
  });

  it('kill what takes more memory, and nothing else', async () => {
    await using made = await createTestBoxes();
    const [one, two] = [
      await made.open('one', { limits: { memBytes: 48 * MEGABYTE } }),
      await made.open('two'),
    ];
    await startInBox(two, 'echo; sleep 600');
    const script = '/usr/bin/python3 -c "x = bytearray(200 << 20); print(len(x))" || echo ended';
    expect((await runInBox(one, script)).output).toMatch(/ended/);
    expect(two.program).toBeDefined();
    expect((await runInBox(one, 'echo alive')).output).toBe('alive\n');
  });

  it.each([
    ['its files', '~/full'],
    ['shared memory', '/dev/shm/full'],
  ])('end a write to %s at their size', async (_, path) => {
    await using made = await createTestBoxes();
    const box = await made.open('one', { limits: { memBytes: 512 * MEGABYTE } });
    const { output } = await runInBox(box, `head -c 300000000 /dev/zero >${path}; stat -c %s ${path}`);
    expect(output).toMatch(/No space left/);
    expect(Number(output.trim().split('\n').at(-1))).toBeLessThan(70 * MEGABYTE);
    expect((await runInBox(box, 'rm -f ~/full; echo ok >~/small; cat ~/small')).output).toBe('ok\n');
  });

  it('are those of other writable places too', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const { output } = await runInBox(
      box,
      'for d in / /dev /usr /etc /.sallyport /proc; do echo x >$d/x && echo $d; done',
    );
    expect(output.split('\n').filter((line) => line.startsWith('/') && !line.includes(':'))).toEqual([]);
  });
});

describe.skipIf(missing !== undefined)(titled('the filter of a box'), { tags: 'long' }, () => {
  const code = [
    'import ctypes, os, sys',
    'libc = ctypes.CDLL(None, use_errno=True)',
    'def call(number):',
    '    libc.syscall.restype = ctypes.c_long',
    '    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(0)] * 6)',
    '    return 0 if result >= 0 else ctypes.get_errno()',
    'print(*[call(int(one)) for one in sys.argv[1:]])',
    'child = os.fork()',
    'if child == 0:',
    '    call(0x40000000 + 39)',
    '    os._exit(0)',
    'print(os.WTERMSIG(os.waitpid(child, 0)[1]))',
  ].join('\n');

  it.skipIf(process.arch !== 'x64')('denies what its table denies, and kills a caller by x32', async () => {
    await using made = await createTestBoxes();
    const box = await made.open('one');
    const numbers = denied.map(([, number]) => String(number));
    const { output } = await runInBox(box, 'exec /usr/bin/python3 -c "$@"', [
      code,
      ...numbers,
      '435',
      '9999',
    ]);
    const [errors = '', signal] = output.split('\n');
    // EPERM for each; ENOSYS for clone3 and for a call of a newer kernel.
    expect(errors.split(' ').map(Number)).toEqual([...denied.map(() => 1), 38, 38]);
    expect(Number(signal)).toBe(constants.signals.SIGSYS);
  });
});

describe.skipIf(missing !== undefined)(titled('a box host that is killed'), { tags: 'long' }, () => {
  it('takes everything of its boxes with it, also what it inherited itself', async () => {
    await using scratch = await createScratch();
    const secret = await scratch.write('secret', 'inherited');
    const driver = join(import.meta.dirname, 'killed-box-host.ts');
    // The shell gives it a descriptor that it knows nothing of.
    const child = spawn(
      '/bin/sh',
      ['-c', 'exec 9<"$1"; exec "$2" "$3" "$4"', 'sh', secret, process.execPath, driver, scratch.path],
      {
        cwd: projectRoot,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    child.stdout.setEncoding('utf8');
    let text = '';
    for await (const piece of child.stdout) {
      text += piece as string;
      if (text.endsWith('\n')) break;
    }
    const { uid, output } = JSON.parse(text) as { uid: number; output: string };
    expect(output).toBe('0 1 2 3\n');
    expect(processesOf(uid).length).toBeGreaterThan(1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const after = await openBoxes(scratch.path);
    expect(processesOf(uid)).toEqual([]);
    expect(execFileSync('losetup', ['-l'], { encoding: 'utf8' })).not.toContain(scratch.path);
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain('sallyport');
    const box = await after.create(newBox('one'));
    await box.open();
    expect((await runInBox(box, 'cat ~/file')).output).toBe('written\n');
    await after.remove('one');
    await after[Symbol.asyncDispose]();
    expect(existsSync(join(scratch.path, 'boxes', 'one'))).toBe(false);
  });
});
