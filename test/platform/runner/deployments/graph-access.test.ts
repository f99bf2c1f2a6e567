// Who decides about callers and which pages may call, read from the configuration file of a build.
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readAccess } from '../../../../src/platform/runner/deployments/graph-access.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

let scratch: Scratch;
beforeEach(async () => {
  scratch = await createScratch();
});
afterEach(() => scratch[Symbol.asyncDispose]());

async function read(document: unknown, origins?: readonly string[]) {
  await writeFile(join(scratch.path, 'langgraph.json'), JSON.stringify(document));
  return readAccess(scratch.path, 'langgraph.json', origins);
}

it.each([
  [{}, 'gateway'],
  [{ auth: {} }, 'gateway'],
  [{ auth: { path: null } }, 'gateway'],
  [{ auth: { path: './auth.ts:auth' } }, 'handler'],
  [[], 'gateway'],
])('%j: the %s decides', async (document, access) => {
  expect(await read(document)).toMatchObject({ access });
});

it('every page may call without a list, those of the variable, or those of the file', async () => {
  const cors = (document: object, origins?: readonly string[]) => read({ http: { cors: document } }, origins);
  const one = 'https://one.example.com';
  expect((await read({})).cors.origins).toEqual(['*']);
  expect((await read({}, [one])).cors.origins).toEqual([one]);
  expect((await cors({ allow_origins: [one] }, ['https://other.example.com'])).cors.origins).toEqual([one]);
  expect((await cors({ allow_origins: [one], allow_credentials: true, max_age: 5 })).cors).toMatchObject({
    ...{ origins: [one], allowsCredentials: true, maxAgeSeconds: 5 },
  });
});

it('a pattern is not evaluated here, and what is invalid allows no page', async () => {
  const { cors } = await read({ http: { cors: { allow_origin_regex: '(a+)+b' } } });
  expect([cors.origins, cors.pattern]).toEqual([[], undefined]);
  expect((await read({ http: { cors: { allow_origins: 'x' } } })).cors.origins).toEqual([]);
});

it('a file as large as a build takes is read', async () => {
  const document = { auth: { path: './auth.ts:auth' }, description: 'x'.repeat(3 * 1024 ** 2) };
  expect(await read(document)).toMatchObject({ access: 'handler' });
});

it('a link that leads out of the build is not read', async () => {
  const build = join(scratch.path, 'build');
  await mkdir(build);
  await writeFile(join(scratch.path, 'outside.json'), '{"auth":{"path":"x"}}');
  await symlink('../outside.json', join(build, 'langgraph.json'));
  await expect(readAccess(build, 'langgraph.json', undefined)).rejects.toThrow(/cannot be read/);
});
