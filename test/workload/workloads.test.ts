import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOwnedDirectory } from '../../src/workload/owned-directory.ts';
import { openWorkloads } from '../../src/workload/workloads.ts';
import {
  createDirectory,
  createOptions,
  isMissing,
  openTestWorkloads,
  recordRun,
  script,
  type TestWorkloads,
  titled,
} from './test-workloads.ts';

const isolations = ['bubblewrap', 'user', 'none'] as const;

describe.each(isolations)('%s', (isolation) => {
  describe.skipIf(isMissing(isolation))(titled('a workload', isolation), () => {
    let opened: TestWorkloads;

    beforeAll(async () => {
      opened = await openTestWorkloads(isolation);
      recordRun(isolation);
    });
    afterAll(() => opened?.[Symbol.asyncDispose]());

    it('prints lines, and ends with its code', async () => {
      const { lines, complaints, ended } = await opened.start(
        script('echo one; echo two; echo three >&2; exit 3'),
      );
      expect(await ended).toEqual({ code: 3, signal: null });
      expect([lines, complaints]).toEqual([['one', 'two'], ['three']]);
    });

    it('ends with the signal that ended it', async () => {
      const { ended } = await opened.start(script('kill -s SEGV $$'));
      expect(await ended).toEqual({ code: null, signal: 'SIGSEGV' });
    });

    it('has its variables and nothing of this process', async () => {
      process.env['OF_THE_RUNNER'] = 'yes';
      const env = { TEXT: `it's "quoted" $HOME \\ \n second line`, EMPTY: '' };
      const { lines, ended } = await opened.start({ ...script('env -0 | tr "\\n\\0" "\\t\\n"'), env });
      await ended;
      delete process.env['OF_THE_RUNNER'];
      const names = lines.map((line) => line.slice(0, line.indexOf('='))).toSorted();
      expect(names).toEqual(['EMPTY', 'HOME', 'LANG', 'PATH', 'PWD', 'SHELL', 'TEXT', 'TMPDIR']);
      expect(lines).toContain(`TEXT=${env.TEXT.replace('\n', '\t')}`);
    });

    it('reads its input on descriptor 3 until the end, and has no other descriptors', async () => {
      const input = 'x'.repeat(300_000);
      const { lines } = await opened
        .start({
          ...script('wc -c <&3; exec 3<&-; ls -1 /proc/$$/fd'),
          input,
        })
        .then(async (started) => ({ ...started, end: await started.ended }));
      const [size, ...descriptors] = lines;
      expect(size).toBe('300000');
      // 10 is what the shell keeps of its script, if anything.
      expect(descriptors.filter((one) => Number(one) < 10)).toEqual(['0', '1', '2']);
    });

    it('begins in its directory, and writes temporary files that are gone with it', async () => {
      const text = 'cd -- "$TMPDIR" && echo kept >file && cat file && pwd -P && umask';
      const { workload, lines, ended } = await opened.start(script(text));
      expect(await ended).toEqual({ code: 0, signal: null });
      expect([lines[0], lines[2]]).toEqual(['kept', '0077']);
      expect(await readdir(join(opened.directory, 'w'))).not.toContain(workload.id);
    });

    it('sees what it was given, and writes where it may', async () => {
      const { workloads, scratch } = opened;
      const user = await workloads.userOf(`mounts-${isolation}`);
      const [given, state] = [await createDirectory(scratch, 'given'), join(scratch, 'state')];
      await writeFile(join(given, 'file'), 'the content', { mode: 0o644 });
      await createOwnedDirectory(state, user);
      const at = (source: string, target: string) => (workloads.hasOwnFiles ? target : source);
      const { lines, ended } = await opened.start({
        ...script(
          'cat "$1/file"; echo; pwd; echo written >result; (echo x >"$1/new") 2>/dev/null || echo denied',
          at(given, '/app'),
        ),
        cwd: at(state, '/var/lib/state'),
        mounts: [
          { source: given, target: at(given, '/app') },
          { source: state, target: at(state, '/var/lib/state'), writable: true },
        ],
        ...(user && { user }),
      });
      expect(await ended).toMatchObject({ code: 0 });
      const denied = isolation === 'none' ? [] : ['denied'];
      expect(lines).toEqual(['the content', at(state, '/var/lib/state'), ...denied]);
      expect(await readFile(join(state, 'result'), 'utf8')).toBe('written\n');
      expect((await stat(join(state, 'result'))).uid).toBe(user?.uid ?? process.getuid?.());
    });

    it('is asked to end, and then ends by itself', async () => {
      const started = await opened.start(
        script('trap "echo bye; exit 7" TERM; echo ready; while :; do sleep 0.05; done'),
      );
      await started.line('ready');
      expect(await started.workload.stop(30_000)).toEqual({ code: 7, signal: null, reason: 'stopped' });
      expect(started.lines).toEqual(['ready', 'bye']);
    });

    it('is killed with all that it started when it does not end', async () => {
      const started = await opened.start(
        script('trap "" TERM; setsid sleep 600 & echo $!; echo ready; sleep 600 & wait; sleep 600'),
      );
      await started.line('ready');
      expect(await started.workload.stop(10)).toMatchObject({ signal: 'SIGKILL', reason: 'stopped' });
    });

    it('is ended after its time', async () => {
      const { ended } = await opened.start({ ...script('sleep 600'), timeoutMs: 50 });
      expect(await ended).toMatchObject({ reason: 'timeout' });
    });

    it('is one without its program', async () => {
      const { ended, complaints } = await opened.start({ command: ['no-such-program'] });
      expect(await ended).toMatchObject({ code: 127 });
      expect(complaints.join()).toContain('no-such-program');
    });

    it('leaves no record and no directory', async () => {
      const { directory } = opened;
      expect(await readdir(join(directory, 'private', 'records'))).toEqual([]);
      expect(await readdir(join(directory, 'w'))).toEqual([]);
    });

    it('is not started with what cannot be, and leaves nothing then', async () => {
      const { directory } = opened;
      await expect(opened.start({ mounts: [{ source: '/absent', target: '/absent' }] })).rejects.toThrow(
        '/absent',
      );
      await expect(opened.start({ id: 'UPPER' })).rejects.toThrow('id');
      expect(await readdir(join(directory, 'w'))).toEqual([]);
    });
  });
});

it('workloads of one group have proxies of their own at the same time', async () => {
  await using opened = await openTestWorkloads('none');
  const network = { group: 'one', policy: { version: 1, document: {}, secrets: {} } };
  const start = () => opened.start({ ...script('echo "$HTTPS_PROXY"; sleep 600'), network });
  const both = [await start(), await start()];
  const proxies = await Promise.all(both.map(({ line }) => line('http://')));
  expect(new Set(proxies).size).toBe(2);
  await Promise.all(both.map(({ workload }) => workload.stop(0)));
}, 60_000);

describe('workloads are not opened', () => {
  it('without isolation where others reach the platform', async () => {
    const { options, scratch } = await createOptions('none');
    await expect(openWorkloads({ ...options, isExposed: true })).rejects.toThrow('listens on loopback alone');
    await scratch[Symbol.asyncDispose]();
  });

  it('twice in one directory', async () => {
    const { options, scratch } = await createOptions('none');
    const workloads = await openWorkloads(options);
    await expect(openWorkloads(options)).rejects.toThrow('another runner runs');
    await workloads.close();
    await (await openWorkloads(options)).close();
    await scratch[Symbol.asyncDispose]();
  });

  it.skipIf(isMissing('user'))(
    titled('as host users that cannot enter their directory', 'user'),
    async () => {
      const { options, scratch } = await createOptions('user');
      const directory = join(await createDirectory(scratch.path, 'closed'), 'workloads');
      await chmod(join(scratch.path, 'closed'), 0o700);
      await expect(openWorkloads({ ...options, directory })).rejects.toThrow('chmod o+x');
      await scratch[Symbol.asyncDispose]();
    },
  );
});
