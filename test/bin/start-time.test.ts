// How long the bundle takes until it is ready, with a compile cache as in the image. Compared with Node alone in the same
// rounds, so that neither the machine nor what else it does counts.
// @module-tag long
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createPackage } from '../support/program-package.ts';
import { createScratch } from '../support/scratch.ts';
import { runToEnd, SpawnedProcess } from '../support/spawned-process.ts';

const ROUNDS = 9;
// Measured on a busy machine: 4.0 to 5.5, and 2.4 to 3.2. A module that is loaded too early passes these bounds, but
// loaded.test.ts finds it.
const MAX_TO_NODE = 6.5;
const MAX_TO_TLS = 4.5;

const RULE = {
  match_hosts: ['api.example.com'],
  headers: [{ name: 'X-Key', type: 'plaintext', value: 'k' }],
};

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

describe('the start of the bundle', () => {
  it('takes a small multiple of the start of Node', async () => {
    await using scratch = await createScratch();
    const copied = join(scratch.path, 'bin', 'sallyport.js');
    await createPackage(scratch.path);
    const tls = await scratch.write('tls.mjs', "import 'node:tls';\n");
    const env = {
      NODE_COMPILE_CACHE: join(scratch.path, 'cache'),
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: join(scratch.path, 'state'),
      SALLYPORT_PROXY_CONFIG: await scratch.write('rules.json', { rules: [RULE] }),
    };
    const proxyToReady = async (): Promise<number> => {
      const startMs = performance.now();
      await using proxy = new SpawnedProcess(process.execPath, [copied, 'proxy'], { env });
      await proxy.record(({ msg }) => msg === 'ready');
      const readyMs = performance.now() - startMs;
      // It writes the compile cache at its end.
      proxy.kill('SIGTERM');
      await proxy.exited;
      return readyMs;
    };
    await proxyToReady();
    const rounds: { readonly node: number; readonly tls: number; readonly proxy: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1)
      rounds.push({
        node: await timed(() => runToEnd(process.execPath, ['-e', '0'])),
        tls: await timed(() => runToEnd(process.execPath, [tls])),
        proxy: await proxyToReady(),
      });
    const shown = JSON.stringify(rounds);
    const proxyMs = median(rounds.map(({ proxy }) => proxy));
    expect(proxyMs / median(rounds.map(({ node }) => node)), shown).toBeLessThan(MAX_TO_NODE);
    expect(proxyMs / median(rounds.map((round) => round.tls)), shown).toBeLessThan(MAX_TO_TLS);
  }, 60_000);
});
