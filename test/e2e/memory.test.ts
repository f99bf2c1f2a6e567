// I5 in memory: a revoked secret is gone from the heap after a garbage collection, and an active one has only a few copies
// there. A process that can read the live memory finds more: freed memory is not wiped. Those copies are counted and
// printed; a core dump contains none of them (test/cli/process/core-dumps.test.ts).
// @module-tag long
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAdminClient, type AskAdmin } from '../support/admin-client.ts';
import { createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { createH2Origin } from '../support/h2-origin.ts';
import { H2WireClient } from '../support/h2-wire-client.ts';
import { createOrigin } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { program, projectRoot, SpawnedProcess } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';
import { countIn, countInMemory } from './process-memory.ts';

const origins = createTestAuthority();
const preload = (name: string): string[] => ['--import', join(projectRoot, 'test', 'support', name)];
const REQUESTS = 40;
/** Copies of one active secret in the heap. */
const MAX_LIVE = 8;

// Letters and digits only, so that no text encoding changes them.
const opaque = 'Canary0paqueZ3n8Qw5Lk2Vb7Xd4';
const workspace = 'CanaryW0rkspaceT6y1Gh9Rf3Jm';
const called = 'CanaryCa11backP8u5Sd2Nc7Hv4';
const values = { opaque, workspace, called };

type Scene = { readonly child: SpawnedProcess; readonly admin: AskAdmin; readonly heapFile: string };

async function start(scratch: Scratch): Promise<Scene & { readonly port: number; readonly ca: string }> {
  const heapFile = join(scratch.path, 'heap.json');
  const preloads = [...preload('name-table.ts'), ...preload('heap-on-signal.ts')];
  const child = new SpawnedProcess(process.execPath, [...preloads, program, 'proxy'], {
    env: {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: scratch.path,
      SALLYPORT_UPSTREAM_CA: await scratch.write('origins.pem', origins.certificatePem),
      TEST_HEAP_FILE: heapFile,
    },
  });
  const ready = await child.record(({ msg }) => msg === 'ready');
  const token = (await readFile(String(ready['admin_token']), 'utf8')).trim();
  return {
    child,
    heapFile,
    admin: createAdminClient(String(ready['admin']), token),
    port: Number(new URL(String(ready['proxy'])).port),
    ca: await readFile(String(ready['ca']), 'utf8'),
  };
}

/** The number of copies of each secret in the heap and in all memory. */
async function holdings({
  child,
  heapFile,
}: Scene): Promise<Record<string, { heap: number; memory: number }>> {
  const before = child.records.filter(({ msg }) => msg === 'snapshot').length;
  child.kill('SIGUSR2');
  await child.record(() => child.records.filter(({ msg }) => msg === 'snapshot').length > before);
  const heap = await readFile(heapFile);
  const memory = countInMemory(child.pid, Object.values(values));
  return Object.fromEntries(
    Object.entries(values).map(([name, value], i) => [
      name,
      { heap: countIn(heap, Buffer.from(value)), memory: memory[i] ?? 0 },
    ]),
  );
}

describe.runIf(process.platform === 'linux')('a secret', () => {
  it('has few copies while it is active, and none in the heap after it was revoked', async () => {
    await using scratch = await createScratch();
    await using origin = await createOrigin({
      tls: { authority: origins, names: ['api.test', 'called.test'] },
    });
    await using streams = await createH2Origin({
      tls: { authority: origins, names: ['h2.test'] },
      respond: async ({ response }) => void (await response(200)),
    });
    await using callback = await createCallbackEndpoint({ headers: { 'X-Called': called } });
    const scene = await start(scratch);
    await using child = scene.child;
    const { admin, port, ca } = scene;
    const proxyConfig = {
      rules: [
        {
          match_hosts: ['api.test', 'h2.test'],
          headers: [
            { name: 'X-Opaque', type: 'opaque', value: opaque },
            { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' },
          ],
        },
      ],
      callbacks: [{ match_hosts: ['called.test'], url: callback.url, ttl_seconds: 60 }],
    };
    expect((await admin('PUT', '/v1/workspace_secrets', { TOKEN: workspace })).status).toBe(200);
    expect((await admin('PUT', '/v1/proxy_config', { proxy_config: proxyConfig })).status).toBe(200);

    for (const name of ['api.test', 'called.test']) {
      const authority = `${name}:${origin.port}`;
      await using client = await WireClient.connectThrough(port, authority, { ca, name });
      for (let i = 0; i < REQUESTS; i += 1) {
        await client.send(`GET /${i} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
        expect((await client.readResponse()).head.status).toBe(200);
      }
    }
    {
      await using client = await H2WireClient.connectThrough(port, `h2.test:${streams.port}`, {
        ca,
        name: 'h2.test',
      });
      for (let i = 0; i < REQUESTS; i += 1)
        expect((await client.request(client.fields(`/${i}`))).status).toBe(200);
    }
    const live = await holdings(scene);

    expect((await admin('PUT', '/v1/proxy_config', { proxy_config: { rules: [] } })).status).toBe(200);
    expect((await admin('PUT', '/v1/workspace_secrets', { TOKEN: null })).status).toBe(200);
    const revoked = await holdings(scene);

    console.log('copies of a secret in the heap and in all memory, live:', live, 'revoked:', revoked);
    expect(Object.values(live).filter(({ heap }) => heap === 0)).toEqual([]);
    expect(Object.entries(revoked).filter(([, { heap }]) => heap > 0)).toEqual([]);
    expect(Object.entries(live).filter(([, { heap }]) => heap > MAX_LIVE)).toEqual([]);
    expect(child.records.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
