// Files of the operator that change under a running `sallyport proxy`, as editors, Kubernetes and mistakes change them.
import { writeFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createOrigin } from '../../support/recording-origin.ts';
import { createScratch } from '../../support/scratch.ts';
import { program, SpawnedProcess } from '../../support/spawned-process.ts';
import { createTestAuthority } from '../../support/test-authority.ts';
import { WireClient } from '../../support/wire-client.ts';

const nameTable = join(import.meta.dirname, '..', '..', 'support', 'name-table.ts');
const origins = createTestAuthority();

/** Each change takes a second to be noticed. */
const LONG = { tags: ['long'] };

const rules = (version: string): string =>
  JSON.stringify({
    rules: [
      {
        match_hosts: ['api.test'],
        headers: [
          { name: 'X-Key', type: 'workspace_secret', value: '{key}' },
          { name: 'X-Version', type: 'plaintext', value: version },
        ],
      },
    ],
  });

/** A proxy whose rules are in a file, and whose secrets are in a mount as Kubernetes makes it. */
async function openScene() {
  await using cleanup = new AsyncDisposableStack();
  const scratch = cleanup.use(await createScratch());
  const origin = cleanup.use(await createOrigin({ tls: { authority: origins, names: ['api.test'] } }));
  const mount = join(scratch.path, 'secrets');
  await mkdir(mount);
  let version = 0;
  const rotate = async (key: string): Promise<void> => {
    version += 1;
    await mkdir(join(mount, `..${version}`));
    await writeFile(join(mount, `..${version}`, 'key'), key);
    await symlink(`..${version}`, join(mount, '..data_tmp'));
    await rename(join(mount, '..data_tmp'), join(mount, '..data'));
  };
  await rotate('key-1');
  await symlink('..data/key', join(mount, 'key'));
  const file = await scratch.write('rules.json', rules('1'));
  const child = cleanup.use(
    new SpawnedProcess(process.execPath, ['--import', nameTable, program, 'proxy', '--proxy-config', file], {
      env: {
        ...{ SALLYPORT_LISTEN: '127.0.0.1:0', SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0' },
        ...{ SALLYPORT_STATE_DIR: join(scratch.path, 'state'), SALLYPORT_SECRETS_DIR: mount },
        SALLYPORT_UPSTREAM_CA: await scratch.write('upstream.pem', origins.certificatePem),
      },
    }),
  );
  const ready = await child.record(({ msg }) => msg === 'ready');
  const port = Number(/(\d+)$/.exec(String(ready['proxy']))?.[1]);
  const ca = await readFile(join(scratch.path, 'state', 'public', 'ca.pem'), 'utf8');
  const injected = async (): Promise<string> => {
    const authority = `api.test:${origin.port}`;
    await using client = await WireClient.connectThrough(port, authority, { ca, name: 'api.test' });
    await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    await client.readResponse();
    const headers = new Map(origin.requests.at(-1)?.headers ?? []);
    return `${headers.get('X-Key')} ${headers.get('X-Version')}`;
  };
  const countOf = (test: (msg: string) => boolean): number =>
    child.records.filter(({ msg }) => test(String(msg))).length;
  const parts = cleanup.move();
  return {
    ...{ scratch, mount, file, child, rotate, injected },
    readiness: async () => (await fetch(`${String(ready['admin'])}/readyz`)).json(),
    applied: (): number => countOf((msg) => msg === 'proxy_config applied'),
    failures: (): number => countOf((msg) => /^(?:reload failed|proxy_config rejected)/.test(msg)),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

it(
  'changed rules and secrets are applied, and what cannot be read or is not valid changes nothing and is one line',
  LONG,
  async () => {
    await using scene = await openScene();
    const { scratch, mount, file, child } = scene;
    const isApplied = async (change: () => Promise<unknown>): Promise<string> => {
      const count = scene.applied();
      await change();
      await child.record(() => scene.applied() > count);
      return scene.injected();
    };
    const isRefused = async (change: () => Promise<unknown>): Promise<string> => {
      const count = scene.failures();
      await change();
      await child.record(() => scene.failures() > count);
      return scene.injected();
    };
    expect(await scene.injected()).toBe('key-1 1');
    expect(await isApplied(() => scene.rotate('key-2'))).toBe('key-2 1');
    const isReplaced = async (): Promise<void> =>
      rename(await scratch.write('rules.json~', rules('2')), file);
    expect(await isApplied(isReplaced)).toBe('key-2 2');

    expect(await isRefused(() => writeFile(file, rules('3').slice(0, 40)))).toBe('key-2 2');
    expect(await scene.readiness()).toEqual({
      status: 'ready',
      reloads: { done: 2, failed: 1, is_current: false },
      ca: { is_ending: false },
    });
    expect(await isApplied(() => writeFile(file, rules('3')))).toBe('key-2 3');

    const isDirectory = async (): Promise<void> => {
      await rm(file);
      await mkdir(file);
    };
    expect(await isRefused(isDirectory)).toBe('key-2 3');
    await rm(file, { recursive: true });
    expect(await isApplied(() => writeFile(file, rules('4')))).toBe('key-2 4');

    expect(await isRefused(() => scene.rotate(''))).toBe('key-2 4');
    expect(await isApplied(() => scene.rotate('key-3'))).toBe('key-3 4');

    expect(await isRefused(() => rename(mount, `${mount}-away`))).toBe('key-3 4');
    expect(await isApplied(() => rename(`${mount}-away`, mount))).toBe('key-3 4');

    expect(scene.failures()).toBe(4);
    expect(await scene.readiness()).toMatchObject({ reloads: { done: 6, failed: 4, is_current: true } });
  },
);

it('a thousand changes in a row are applied a few times, the last one among them', async () => {
  await using scene = await openScene();
  for (let version = 1; version <= 1000; version += 1) writeFileSync(scene.file, rules(`${version}`));
  const before = scene.applied();
  await scene.child.record(() => scene.applied() > before);
  // What was written last may have been seen by the look after that.
  if ((await scene.injected()) !== 'key-1 1000') await scene.child.record(() => scene.applied() > before + 1);
  expect(await scene.injected()).toBe('key-1 1000');
  expect(scene.applied() - before).toBeLessThanOrEqual(3);
  expect(scene.failures()).toBe(0);
});
