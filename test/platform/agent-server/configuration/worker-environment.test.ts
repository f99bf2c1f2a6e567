// The variables of workers: what the configuration gives them, and none of the server.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { EnvironmentDocument } from '../../../../src/platform/agent-server/configuration/graph-file.ts';
import {
  readDeploymentEnvironment,
  readWorkerEnvironment,
} from '../../../../src/platform/agent-server/configuration/worker-environment.ts';
import { createScratch } from '../../../support/scratch.ts';

const server = { OPENAI_API_KEY: 'k', DATABASE_URL: 'postgresql://secret', SALLYPORT_AGENT_LISTEN: ':1' };

it('are those of a map', async () => {
  expect(await readWorkerEnvironment({ A: '1' }, '/nowhere', server)).toEqual({
    ok: true,
    value: { A: '1' },
  });
});

it('are those of the server that a list names, but its own', async () => {
  const read = (names: readonly string[]) => readWorkerEnvironment(names, '/nowhere', server);
  expect(await read(['OPENAI_API_KEY'])).toEqual({ ok: true, value: { OPENAI_API_KEY: 'k' } });
  expect(await read(['ABSENT', 'DATABASE_URL', 'SALLYPORT_AGENT_LISTEN'])).toMatchObject({
    ok: false,
    issues: [
      { loc: ['env', 0], msg: expect.stringContaining('ABSENT is not set in the environment of the server') },
      { loc: ['env', 1], msg: expect.stringContaining('DATABASE_URL belongs to the server') },
      { loc: ['env', 2], msg: expect.stringContaining('SALLYPORT_AGENT_LISTEN belongs to the server') },
    ],
  });
});

it('are those of a file, which is relative to the configuration', async () => {
  await using scratch = await createScratch();
  await scratch.write('.env', '# a comment\nA=1\nB="two words"\nexport C=3\n');
  const value = { A: '1', B: 'two words', C: '3' };
  expect(await readWorkerEnvironment('.env', scratch.path, server)).toEqual({ ok: true, value });
  await scratch.write('broken', 'A=1\nB\n');
  expect(await readWorkerEnvironment('broken', scratch.path, server)).toMatchObject({
    issues: [
      { loc: ['env'], msg: expect.stringContaining(`${join(scratch.path, 'broken')}:2: must be NAME=value`) },
    ],
  });
  const msg = `${join(scratch.path, 'absent')} cannot be read: ENOENT`;
  expect(await readWorkerEnvironment('absent', scratch.path, server)).toMatchObject({
    issues: [{ loc: ['env'], msg }],
  });
});

it('of a deployment are its own, over those of the configuration', async () => {
  await using scratch = await createScratch();
  const given = { A: 'own', SECRET: 's' };
  const read = (document: EnvironmentDocument) => readDeploymentEnvironment(document, scratch.path, given);
  expect(await read({ A: '1', B: '2' })).toEqual({ ok: true, value: { A: 'own', B: '2', SECRET: 's' } });
  expect(await read(['SECRET'])).toEqual({ ok: true, value: given });
  const issues = [
    { loc: ['env', 0], msg: expect.stringContaining('C is not among the secrets of the depl') },
  ];
  expect(await read(['C'])).toMatchObject({ ok: false, issues });
  // Its content was sent as secrets.
  expect(await read('.env')).toEqual({ ok: true, value: given });
  await scratch.write('.env', 'A=1\nB=2\n');
  expect(await read('.env')).toEqual({ ok: true, value: { A: 'own', B: '2', SECRET: 's' } });
  await scratch.write('file', '');
  expect(await read('file/.env')).toMatchObject({ issues: [{ loc: ['env'] }] });
});
