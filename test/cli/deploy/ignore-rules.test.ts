import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { IgnoreRules } from '../../../src/cli/deploy/ignore-rules.ts';
import { createScratch } from '../../support/scratch.ts';

async function write(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
}

/** Of each path, whether it is packed. */
async function decide(root: string, paths: readonly string[]): Promise<readonly string[]> {
  const rules = await IgnoreRules.read(root);
  return paths.filter((path) => rules.reasonFor(path) === undefined);
}

describe('the rules of a directory', () => {
  it('leave out what .gitignore or .dockerignore name', async () => {
    await using scratch = await createScratch();
    await write(scratch.path, { '.gitignore': '*.log\n!keep.log\n/data/\n', '.dockerignore': 'secret*\n' });
    const paths = ['a.ts', 'a.log', 'keep.log', 'data/', 'src/data/', 'secret.json', 'src/x.log', 'A.LOG'];
    expect(await decide(scratch.path, paths)).toEqual(['a.ts', 'keep.log', 'src/data/', 'A.LOG']);
  });

  it('leave out what both together name: neither brings back what the other leaves out', async () => {
    await using scratch = await createScratch();
    await write(scratch.path, { '.gitignore': '*.log\n', '.dockerignore': '!a.log\n' });
    expect(await decide(scratch.path, ['a.log'])).toEqual([]);
  });

  it.each(['.git/', '.git', 'node_modules/', 'packages/a/node_modules/', 'venv/', 'a/__pycache__/'])(
    'leave out %s, even when a rule brings it back',
    async (path) => {
      await using scratch = await createScratch();
      await write(scratch.path, { '.gitignore': `!${path}\n` });
      expect(await decide(scratch.path, [path])).toEqual([]);
    },
  );

  it('name the file that leaves a path out', async () => {
    await using scratch = await createScratch();
    await write(scratch.path, { '.gitignore': 'a\n' });
    const rules = await IgnoreRules.read(scratch.path);
    expect(rules.reasonFor('a')).toBe(join(scratch.path, '.gitignore'));
  });

  it('are an error when a file of them cannot be read', async () => {
    await using scratch = await createScratch();
    await mkdir(join(scratch.path, '.gitignore'));
    await expect(IgnoreRules.read(scratch.path)).rejects.toThrow(/\.gitignore cannot be read \(EISDIR\)/);
  });
});

describe('a .gitignore', () => {
  it('above the directory counts up to the top of the repository', async () => {
    await using scratch = await createScratch();
    const root = join(scratch.path, 'top', 'packages', 'agent');
    await write(join(scratch.path, 'top'), {
      '.git/HEAD': '',
      '.gitignore': '.env\n/packages/agent/out/\n*.tmp\n',
      'packages/.gitignore': '!kept.tmp\n',
      'packages/agent/langgraph.json': '{}',
    });
    await write(scratch.path, { '.gitignore': 'langgraph.json\n' });
    const paths = ['.env', 'out/', 'kept.tmp', 'other.tmp', 'langgraph.json'];
    expect(await decide(root, paths)).toEqual(['kept.tmp', 'langgraph.json']);
  });

  it('above a directory that is in no repository does not count', async () => {
    await using scratch = await createScratch();
    await write(scratch.path, { '.gitignore': '*\n', 'agent/a.ts': '' });
    expect(await decide(join(scratch.path, 'agent'), ['a.ts'])).toEqual(['a.ts']);
  });

  it('inside of a folder counts there, and before those above', async () => {
    await using scratch = await createScratch();
    await write(scratch.path, { '.gitignore': '*.log\n', 'src/.gitignore': '!a.log\n/only-here\n' });
    const inside = await (await IgnoreRules.read(scratch.path)).inside('src/');
    const paths = ['src/a.log', 'src/b.log', 'src/only-here', 'src/deep/only-here'];
    const packed = paths.filter((path) => inside.reasonFor(path) === undefined);
    expect(packed).toEqual(['src/a.log', 'src/deep/only-here']);
  });
});

it('git leaves out the same', async () => {
  await using scratch = await createScratch();
  const patterns = [
    '*.log',
    '!important.log',
    'build/',
    '/top',
    'a/**/z',
    'x[0-9].txt',
    '#no',
    String.raw`\#yes`,
    'trailing\\ ',
  ];
  const paths = [
    'a.log',
    'important.log',
    'build/x',
    'src/build/x',
    'top',
    'src/top',
    'a/b/c/z',
    'a/z',
    'x1.txt',
    'xa.txt',
    '#no',
    '#yes',
    'trailing ',
    'BUILD/x',
  ];
  await write(scratch.path, { '.gitignore': `${patterns.join('\n')}\n` });
  execFileSync('git', ['init', '--quiet'], { cwd: scratch.path });
  await write(scratch.path, Object.fromEntries(paths.map((path) => [path, ''])));
  const listed = execFileSync(
    'git',
    ['-c', 'core.quotePath=off', 'ls-files', '-z', '-co', '--exclude-standard'],
    {
      cwd: scratch.path,
      encoding: 'utf8',
    },
  );
  const git = listed.split('\0').filter((path) => path !== '' && path !== '.gitignore');
  expect((await decide(scratch.path, paths)).toSorted()).toEqual(git.toSorted());
});
