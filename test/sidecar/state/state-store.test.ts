import { randomBytes } from 'node:crypto';
import { chmod, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { maxStateBytes } from '../../../src/sidecar/state/state-files.ts';
import { type StateStore, SealedStateStore } from '../../../src/sidecar/state/state-store.ts';
import { type Scratch, createScratch } from '../../support/scratch.ts';
import { SpawnedProcess, projectRoot } from '../../support/spawned-process.ts';

type State = AsyncDisposable & {
  readonly directory: string;
  /** A store as each start makes it. */
  start(): StateStore;
  /** Path of a sandbox's sealed file. */
  sealed(id: string): string;
  files(): Promise<readonly string[]>;
};

/** State in a directory that is not there yet, with its key in a file. */
async function createState(contents: Readonly<Record<string, string>> = {}): Promise<State> {
  const scratch: Scratch = await createScratch();
  const directory = join(scratch.path, 'made', 'state');
  const start = (): StateStore =>
    new SealedStateStore({ directory, key: { file: join(directory, 'state.key') } });
  const store = start();
  for (const [id, content] of Object.entries(contents)) await store.write(id, content);
  await store.close();
  return {
    directory,
    start,
    sealed: (id) => join(directory, 'sandboxes', `${id}.sealed`),
    files: async () => (await readdir(directory, { recursive: true })).toSorted(),
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
  };
}

const everything = ['sandboxes', 'sandboxes/box.sealed', 'state.key', 'state.lock'];

describe('state', () => {
  it('survives the process: what was written last is read', async () => {
    await using state = await createState({ default: 'first', box: '{"ünd": "\u{1f511}"}' });
    const store = state.start();
    await store.readAll();
    await store.write('default', 'second');
    await store.close();
    const after = state.start();
    expect(await after.readAll()).toEqual(
      new Map([
        ['box', '{"ünd": "\u{1f511}"}'],
        ['default', 'second'],
      ]),
    );
    await after.close();
  });

  it.each(['', '\ufeffwith a mark', 'x'.repeat(3_000_000)])('is read as it was written', async (content) => {
    await using state = await createState({ box: content });
    const store = state.start();
    expect((await store.readAll()).get('box') === content).toBe(true);
    await store.close();
  });

  it('that was removed is gone, and removing what does not exist succeeds', async () => {
    await using state = await createState({ box: 'a', other: 'b' });
    const store = state.start();
    await store.readAll();
    await store.remove('other');
    await store.remove('other');
    await store.remove('unknown');
    await store.close();
    expect(await state.files()).toEqual(everything);
  });

  it('does not exist, and no file is created for it, before something is written', async () => {
    await using state = await createState();
    const store = state.start();
    expect(await store.readAll()).toEqual(new Map());
    await store.remove('box');
    await store.close();
    await expect(stat(state.directory)).rejects.toThrow('ENOENT');
  });

  it('is readable by its user only', async () => {
    await using state = await createState({ box: 'a' });
    const store = state.start();
    await store.readAll();
    const modeOf = async (name: string): Promise<number> =>
      (await stat(join(state.directory, name))).mode & 0o777;
    expect(await state.files()).toEqual(everything);
    expect(await Promise.all(['', ...everything].map(modeOf))).toEqual([0o700, 0o700, 0o600, 0o600, 0o600]);
    await store.close();
  });

  it('is written in the order of the calls', async () => {
    await using state = await createState();
    const store = state.start();
    const contents = Array.from({ length: 20 }, (_, at) => `${at} ${'x'.repeat(at % 2 === 0 ? 500_000 : 1)}`);
    await Promise.all(contents.flatMap((content) => [store.write('a', content), store.write('b', content)]));
    expect([...(await store.readAll()).values()].map((content) => content.slice(0, 3))).toEqual([
      '19 ',
      '19 ',
    ]);
    await store.close();
  });

  it.each(['', '-a', 'a-', 'A', 'a.b', '../a', 'a/b', 'a b', 'é', 'a'.repeat(64), 'a\0'])(
    'is not stored under the id %j',
    async (id) => {
      await using state = await createState();
      const store = state.start();
      await expect(store.write(id, 'a')).rejects.toThrow('a sandbox id has');
      await expect(store.remove(id)).rejects.toThrow('a sandbox id has');
      await store.close();
    },
  );

  it(`of more than ${maxStateBytes} bytes is rejected, and the previous state stays`, async () => {
    await using state = await createState({ box: 'old' });
    const store = state.start();
    await store.readAll();
    await expect(store.write('box', 'é'.repeat(maxStateBytes / 2 + 1))).rejects.toThrow(
      `the state of box has ${maxStateBytes + 2} bytes; at most ${maxStateBytes} can be stored`,
    );
    expect(await store.readAll()).toEqual(new Map([['box', 'old']]));
    await store.close();
  });
});

describe('the key', () => {
  it('of a variable leaves no key file', async () => {
    await using state = await createState();
    const key = { text: randomBytes(32).toString('hex'), from: 'THE_VARIABLE' };
    for (const round of ['first', 'second']) {
      const store = new SealedStateStore({ directory: state.directory, key });
      expect((await store.readAll()).get('box')).toBe(round === 'first' ? undefined : 'kept');
      await store.write('box', 'kept');
      await store.close();
    }
    expect(await state.files()).toEqual(everything.filter((name) => name !== 'state.key'));
  });

  it('that is invalid stops the start although nothing is sealed yet', async () => {
    await using state = await createState();
    const store = new SealedStateStore({
      directory: state.directory,
      key: { text: 'short', from: 'THE_VARIABLE' },
    });
    await expect(store.readAll()).rejects.toThrow('THE_VARIABLE: must be 32 random bytes');
  });

  it('that others can read stops the start', async () => {
    await using state = await createState({ box: 'a' });
    await chmod(join(state.directory, 'state.key'), 0o644);
    await expect(state.start().readAll()).rejects.toThrow('chmod 0600');
  });

  it('that is missing stops the start, and no new key is created', async () => {
    await using state = await createState({ box: 'a' });
    const file = join(state.directory, 'state.key');
    await rm(file);
    const store = state.start();
    const folder = join(state.directory, 'sandboxes');
    await expect(store.readAll()).rejects.toThrow(
      `${file}: is missing, and files that it encrypted exist. Restore it, or remove ${folder} to start over.`,
    );
    await expect(store.write('new', 'b')).rejects.toThrow('has state that was not read');
    await expect(stat(file)).rejects.toThrow('ENOENT');
    await rm(folder, { recursive: true });
    expect(await store.readAll()).toEqual(new Map());
    await store.write('box', 'anew');
    await store.close();
    expect(await state.files()).toEqual(everything);
  });

  it('that opened the state seals it, whatever happens to its file', async () => {
    await using state = await createState({ box: 'a' });
    const store = state.start();
    await store.readAll();
    const file = join(state.directory, 'state.key');
    const key = await readFile(file);
    await writeFile(file, randomBytes(32).toString('hex'));
    await store.write('other', 'b');
    await store.close();
    await writeFile(file, key);
    const after = state.start();
    expect([...(await after.readAll()).keys()]).toEqual(['box', 'other']);
    await after.close();
  });
});

describe('another process', () => {
  it('is rejected while one uses the state, and accepted when that one was killed', async () => {
    await using state = await createState({ box: '0:0' });
    const program = join(projectRoot, 'test', 'sidecar', 'state', 'state-writer-program.ts');
    const input = `${JSON.stringify({ directory: state.directory, first: 1 })}\n`;
    await using other = new SpawnedProcess(process.execPath, [program], { input });
    await other.output((said) => said.includes('done 1\n'));
    const store = state.start();
    const refused = `${state.directory}: another process (pid ${other.pid}) uses this state. Stop it, or set another state_dir.`;
    await expect(store.readAll()).rejects.toThrow(refused);
    await expect(store.write('box', 'mine')).rejects.toThrow(refused);
    await expect(store.remove('box')).rejects.toThrow(refused);
    other.kill('SIGKILL');
    await other.exited;
    expect((await store.readAll()).get('box')).toMatch(/^[1-9]/);
    await store.close();
  });

  it('that wrote since the start is not overwritten', async () => {
    await using state = await createState();
    const store = state.start();
    await store.readAll();
    const other = state.start();
    await other.write('box', 'theirs');
    await other.close();
    await expect(store.write('box', 'ours')).rejects.toThrow(
      `${join(state.directory, 'sandboxes')}: has state that was not read. Start again.`,
    );
    expect(await store.readAll()).toEqual(new Map([['box', 'theirs']]));
    await store.close();
  });

  it('is accepted when the state is closed, after the operations that were begun', async () => {
    await using state = await createState({ box: 'a' });
    const store = state.start();
    await store.readAll();
    const begun = Promise.all(['b', 'c', 'd'].map((content) => store.write('box', content)));
    await store.close();
    const after = state.start();
    expect((await after.readAll()).get('box')).toBe('d');
    await begun;
    await expect(store.write('box', 'e')).rejects.toThrow('the state is closed');
    await expect(store.readAll()).rejects.toThrow('the state is closed');
    await after.close();
  });

  it('creates no second key at its first write', async () => {
    await using state = await createState();
    const stores = [state.start(), state.start(), state.start()];
    const outcomes = await Promise.allSettled(stores.map((store, at) => store.write(`box-${at}`, 'a')));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await Promise.all(stores.map((store) => store.close()));
    const after = state.start();
    expect((await after.readAll()).size).toBe(1);
    await after.close();
  });
});

describe('nothing is loaded for state that does not exist', () => {
  it('neither libsodium nor SQLite', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('loaded', '');
    const loadRecord = join(projectRoot, 'test', 'architecture', 'load-record.ts');
    const module = join(projectRoot, 'src', 'sidecar', 'state', 'state-store.ts');
    const program = await scratch.write(
      'program.mjs',
      `import { SealedStateStore } from ${JSON.stringify(module)};
      const directory = ${JSON.stringify(join(scratch.path, 'state'))};
      const store = new SealedStateStore({ directory, key: { file: directory + '/state.key' } });
      await store.readAll();
      if (process.argv[2] === 'write') await store.write('box', 'a');
      await store.close();`,
    );
    const loadedBy = async (mode: string): Promise<readonly (string | undefined)[]> => {
      await writeFile(file, '');
      await using child = new SpawnedProcess(process.execPath, ['--import', loadRecord, program, mode], {
        env: { SALLYPORT_LOADED: file },
      });
      expect(await child.exited, child.stderr).toEqual({ code: 0, signal: null });
      const urls = (await readFile(file, 'utf8')).split('\n');
      return ['libsodium-wrappers', 'node:sqlite'].filter((name) => urls.some((url) => url.includes(name)));
    };
    expect(await loadedBy('read')).toEqual([]);
    expect(await loadedBy('write')).toEqual(['libsodium-wrappers', 'node:sqlite']);
  });
});
