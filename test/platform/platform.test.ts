// The composition of a process: in which order its parts start and end, and what a module gets of them.
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { z } from '../../src/base/schema.ts';
import { Secret } from '../../src/base/secret.ts';
import { anyone } from '../../src/platform/api/access.ts';
import { defineRoute } from '../../src/platform/api/route.ts';
import { createOrganization } from '../../src/platform/management/first-organization.ts';
import type { Module } from '../../src/platform/module.ts';
import { openPlatform, type Platform } from '../../src/platform/platform.ts';
import { openStorage, type Storage } from '../../src/platform/storage.ts';
import { defineJob } from '../../src/platform/store/job.ts';
import { createMasterKeyFile } from '../../src/platform/vault/master-keys.ts';
import { createTestDatabase } from '../support/platform-database.ts';
import { createScratch } from '../support/scratch.ts';
import { createTestConfig } from '../support/test-wiring.ts';

const log = createLog('silent', { write: () => undefined });

type Opening = { readonly more?: object; wrap?(storage: Storage): Storage };

async function open(
  role: string,
  modules: readonly Module[],
  { more = {}, wrap = (storage) => storage }: Opening = {},
): Promise<Platform> {
  const database = await createTestDatabase();
  onTestFinished(() => database[Symbol.asyncDispose]());
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  const config = createTestConfig({
    role,
    listen: '127.0.0.1:0',
    data_dir: join(scratch.path, 'data'),
    database: { url: database.url },
    ...more,
  });
  return openPlatform(config, {
    ...{ log, version: '0.0.0', program: [], modules },
    storage: openStorage(config, log).then(wrap),
  });
}

/** Its route sends a job, which ends when the process drains. */
function createEcho(name: string, steps: string[], isTaken: PromiseWithResolvers<void>): Module {
  const job = defineJob({
    name: `echo-${name}`,
    data: z.strictObject({ text: z.string() }),
    ...{ retries: 0, delaySeconds: 0, timeoutSeconds: 60 },
    async run({ text }, { signal }) {
      steps.push(`${name} runs ${text}`);
      isTaken.resolve();
      if (!signal.aborted && text === 'slow') await once(draining, 'abort');
      steps.push(`${name} ran`);
    },
  });
  let draining = new AbortController().signal;
  return {
    name,
    jobs: [job],
    info: () => ({ instance_flags: { [name]: true } }),
    routes: ({ send }) => [
      defineRoute({
        ...{ method: 'POST', path: `/v1/${name}`, tag: 'Test', summary: 'Send a job' },
        access: anyone,
        tracking: { untracked: 'a test' },
        body: z.strictObject({ text: z.string() }),
        responses: { 204: null },
        handle: async ({ db, body }) => send(db, job, body),
      }),
    ],
    async start({ roles, signal }) {
      draining = signal;
      steps.push(`${name} starts${roles.serves ? ' serving' : ''}${roles.works ? ' working' : ''}`);
      return { close: async () => void steps.push(`${name} closes`) };
    },
  };
}

it('modules start in order and close in reverse, after requests and jobs, which hear of the drain', async () => {
  const steps: string[] = [];
  const isTaken = Promise.withResolvers<void>();
  const modules = [createEcho('one', steps, isTaken), createEcho('two', steps, isTaken)];
  const platform = await open('both', modules);
  const info = await fetch(`${platform.url}/info`);
  expect(await info.json()).toMatchObject({ instance_flags: { one: true, two: true } });
  const body = JSON.stringify({ text: 'slow' });
  const headers = { 'Content-Type': 'application/json' };
  const sent = await fetch(`${platform.url}/v1/one`, { method: 'POST', headers, body });
  expect(sent.status).toBe(204);
  await isTaken.promise;
  await platform.close();
  expect(steps).toEqual([
    'one starts serving working',
    'two starts serving working',
    'one runs slow',
    'one ran',
    'two closes',
    'one closes',
  ]);
});

it('jobs run once all modules have started, because they may need what a module starts', async () => {
  const steps: string[] = [];
  const isTaken = Promise.withResolvers<void>();
  const modules = [createEcho('one', steps, isTaken), createEcho('two', steps, isTaken)];
  const wrap = (storage: Storage): Storage => ({
    ...storage,
    async openJobs(...given) {
      const jobs = await storage.openJobs(...given);
      const work = (): Promise<void> => {
        steps.push('jobs run');
        return jobs.work();
      };
      return { ...jobs, work };
    },
  });
  const platform = await open('work', modules, { wrap });
  await platform.close();
  expect(steps).toEqual(['one starts working', 'two starts working', 'jobs run', 'two closes', 'one closes']);
});

it('what has started is closed when a later part fails', async () => {
  const steps: string[] = [];
  const failing: Module = {
    name: 'failing',
    async start() {
      throw new Error('it has no key');
    },
  };
  const isTaken = Promise.withResolvers<void>();
  await expect(open('work', [createEcho('one', steps, isTaken), failing])).rejects.toThrow('it has no key');
  expect(steps).toEqual(['one starts working', 'one closes']);
});

it('a module seals values in the vault, and is not started with a wrong master key', async () => {
  const opened: (string | undefined)[] = [];
  const sealing: Module = {
    name: 'sealing',
    async start({ store, vault }) {
      const { workspaceId } = await store.write((trx) => createOrganization(trx, { name: 'One' }));
      const place = { workspaceId, purpose: 'test', name: 'TOKEN', version: 1 };
      const sealed = await store.write((trx) => vault.seal(trx, place, new Secret('hush')));
      opened.push((await vault.unsealValue(store.db, place, sealed))?.reveal());
      return undefined;
    },
  };
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  const file = join(scratch.path, 'vault-master.key');
  await createMasterKeyFile(file);
  const platform = await open('work', [sealing], { more: { vault: { master_key_file: file } } });
  await platform.close();
  expect(opened).toEqual(['hush']);
  const missing = { vault: { master_key_file: `${file}.other` } };
  await expect(open('work', [sealing], { more: missing })).rejects.toThrow('there is no master key');
  expect(opened).toHaveLength(1);
});
