import { describe, expect, it } from 'vitest';
import { readDeploymentSecrets } from '../../../src/cli/deploy/deployment-secrets.ts';
import { createScratch } from '../../support/scratch.ts';

const SECRET = 'c4n4ry-secret';

async function read(declared: unknown, files: Record<string, string>, variables = {}, withFile = false) {
  await using scratch = await createScratch();
  for (const [name, text] of Object.entries(files)) await scratch.write(name, text);
  const secretsFile = withFile ? `${scratch.path}/given` : undefined;
  const { secrets, notes } = await readDeploymentSecrets({
    secretsFile,
    declared,
    directory: scratch.path,
    variables,
  });
  const revealed = [...secrets].map(([name, value]) => [name, value.reveal()]);
  return {
    secrets: Object.fromEntries(revealed),
    notes: notes.map((note) => note.replace(scratch.path, '')),
  };
}

describe('the secrets of a deployment', () => {
  it('are those of the file that env names, without reserved names and empty values', async () => {
    const file = `A=${SECRET}\nB=\nPATH=/bin\nDATABASE_URL=x\n`;
    expect(await read('.env', { '.env': file })).toEqual({
      secrets: { A: SECRET },
      notes: ['left out, because the platform sets it: PATH, DATABASE_URL'],
    });
  });

  it('are kept as they are where that file does not exist', async () => {
    const note = 'env names /.env, which does not exist: the platform keeps the secrets that it has';
    expect(await read('.env', {})).toEqual({ secrets: {}, notes: [note] });
  });

  it('are those of this shell that a list names', async () => {
    const variables = { A: SECRET, B: 'b', PATH: '/bin' };
    expect(await read(['A', 'PATH'], {}, variables)).toMatchObject({ secrets: { A: SECRET } });
  });

  it('are none where env is a map, or absent', async () => {
    expect(await read({ A: 'a' }, {})).toEqual({ secrets: {}, notes: [] });
    expect(await read(undefined, {})).toEqual({ secrets: {}, notes: [] });
  });

  it('are those of --secrets-file before all others', async () => {
    const files = { given: 'A=1\nB=2\n', '.env': 'C=3\n' };
    expect((await read('.env', files, {}, true)).secrets).toEqual({ A: '1', B: '2' });
    expect((await read(['B'], files, {}, true)).secrets).toEqual({ B: '2' });
  });
});

describe('an error, without a value, is', () => {
  it.each<[string, unknown, Record<string, string>, boolean, RegExp]>([
    [
      'a line that is no variable',
      '.env',
      { '.env': `A=1\n${SECRET}` },
      false,
      /\.env:2: must be NAME=value/,
    ],
    [
      'a name of the list that is not set',
      ['A', 'B'],
      {},
      false,
      /env names A, B, which this shell does not have/,
    ],
    [
      'a name that --secrets-file does not have',
      ['A'],
      { given: 'B=1' },
      true,
      /env names A, which .*given does not have/,
    ],
    ['a --secrets-file that does not exist', undefined, {}, true, /--secrets-file: .*given does not exist/],
    ['an env of another kind', 7, {}, false, /env must be a map/],
  ])('%s', async (_, declared, files, withFile, message) => {
    const failed = read(declared, files, {}, withFile);
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.not.toThrow(SECRET);
  });
});
