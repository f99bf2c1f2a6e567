import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  readGraphConfiguration,
  requireNamedFiles,
} from '../../../../src/platform/builder/source/graph-configuration.ts';
import { createScratch } from '../../../support/scratch.ts';

async function createSource(files: Readonly<Record<string, unknown>>) {
  const scratch = await createScratch();
  const root = join(await realpath(scratch.path), 'source');
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  await mkdir(root, { recursive: true });
  return {
    root,
    read: (path?: string) => readGraphConfiguration(root, path, 26),
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
  };
}

const graphs = { agent: './src/agent.ts:graph' };

describe('a configuration', () => {
  it('is that of the root by default', async () => {
    await using source = await createSource({ 'langgraph.json': { graphs, dependencies: ['.'] } });
    expect(await source.read()).toMatchObject({
      ...{ path: 'langgraph.json', directory: '', dependencies: ['.'], notes: [] },
    });
  });

  it('may be below, and may say what has no effect', async () => {
    const document = { graphs, http: { logging_headers: {} } };
    await using source = await createSource({ 'apps/one/graph.json': document });
    const { path, directory, notes } = await source.read('./apps//one/graph.json');
    expect({ path, directory }).toEqual({ path: 'apps/one/graph.json', directory: 'apps/one' });
    expect(notes).toEqual(['http.logging_headers has no effect: no field of a request is logged']);
  });

  it('names a file of variables, which is checked if it is there', async () => {
    await using source = await createSource({ 'langgraph.json': { graphs, env: '.env' }, '.env': 'A=1' });
    expect((await source.read()).notes).toEqual([]);
    await writeFile(join(source.root, '.env'), 'A=1\nsecret value');
    await expect(source.read()).rejects.toThrow(/^\.env:2: must be NAME=value/);
  });

  it('may name one that is not packed', async () => {
    await using source = await createSource({ 'langgraph.json': { graphs, env: '.env' } });
    expect((await source.read()).notes).toEqual([
      '.env is not in the archive: the deployment has its secrets alone',
    ]);
  });
});

describe('refused is', () => {
  const named = { 'langgraph.json': { graphs } };
  it.each([
    ['a source without one', {}, undefined, 'There is no langgraph.json in the archive'],
    [
      'a path that is not there',
      named,
      'app/langgraph.json',
      'There is no app/langgraph.json in the archive',
    ],
    ['a path that leads outside', named, '../langgraph.json', 'leads outside of the archive'],
    ['an absolute path', named, '/etc/passwd', 'leads outside of the archive'],
    ['a directory', { 'app/file': '' }, 'app', 'There is no app in the archive'],
    [
      'no JSON',
      { 'langgraph.json': '{\n  graphs: 1' },
      undefined,
      'langgraph.json:2:3: not valid JSON: write names in double quotes',
    ],
    ['a name twice', { 'langgraph.json': '{"env": {}, "env": {}}' }, undefined, 'occurs twice'],
    [
      'no graph',
      { 'langgraph.json': { graphs: {} } },
      undefined,
      'langgraph.json: graphs: At least one graph',
    ],
    [
      'Python',
      { 'langgraph.json': { graphs: { a: './agent.py:graph' } } },
      undefined,
      'langgraph.json: graphs.a: Python is not supported',
    ],
    [
      'a newer Node',
      { 'langgraph.json': { graphs, node_version: '99' } },
      undefined,
      'langgraph.json: node_version: asks for Node 99',
    ],
    [
      'variables from outside',
      { 'langgraph.json': { graphs, env: '../../etc/environment' } },
      undefined,
      'langgraph.json: env: is outside of the archive',
    ],
    [
      'one that is too large',
      { 'langgraph.json': ' '.repeat(5_000_000) },
      undefined,
      'more than 4194304 bytes',
    ],
  ] as [string, Record<string, unknown>, string | undefined, string][])(
    '%s',
    async (_, files, path, reason) => {
      await using source = await createSource(files);
      const read = source.read(path);
      await expect(read).rejects.toThrow(reason);
      await expect(read).rejects.toMatchObject({ name: 'BuildError', status: 'CREATE_FAILED' });
    },
  );

  it('a link that leads out of the source', async () => {
    await using source = await createSource({});
    await writeFile(join(source.root, '../secret.json'), JSON.stringify({ graphs }));
    await symlink('../secret.json', join(source.root, 'langgraph.json'));
    await expect(source.read()).rejects.toThrow('There is no langgraph.json in the archive');
  });
});

it('the files that it names are there, after the build at the latest', async () => {
  const document = {
    graphs: { ...graphs, other: './dist/other.js:graph', far: '../far.ts:graph' },
    auth: { path: './auth.ts:auth' },
    http: { app: './app.ts:app' },
  };
  await using source = await createSource({
    'app/langgraph.json': document,
    'app/src/agent.ts': '',
    'far.ts': '',
  });
  const configuration = await source.read('app/langgraph.json');
  const checked = requireNamedFiles(source.root, configuration, 'BUILD_FAILED');
  await expect(checked).rejects.toMatchObject({ status: 'BUILD_FAILED' });
  await expect(checked).rejects.toThrow(
    'app/langgraph.json: graphs.other: ./dist/other.js does not exist: correct the path, which is relative to the ' +
      'configuration file; app/langgraph.json: auth.path: ./auth.ts does not exist',
  );
  await symlink('../../', join(source.root, 'app/dist'));
  await writeFile(join(source.root, '../other.js'), '');
  await expect(requireNamedFiles(source.root, configuration, 'BUILD_FAILED')).rejects.toThrow(
    'graphs.other: ./dist/other.js is outside of the archive',
  );
});
