// The rows of S-04 against a separate process; every directory that it may write to is checked.
import { access, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { bearerRule } from '../../invariants/credential-scene.ts';
import { type Scratch, createScratch } from '../../support/scratch.ts';
import { type SpawnedSallyport, spawnSallyport } from '../../support/spawned-process.ts';
import { diskRows } from './rows-disk.ts';
import { numbered, sayHello } from './tls-driver.ts';

let home: Scratch;
let sallyport: SpawnedSallyport;
beforeAll(async () => {
  home = await createScratch();
  sallyport = await spawnSallyport({
    proxyConfig: { rules: [bearerRule('api.test'), bearerRule('*.mint.test')] },
    env: { HOME: home.path, TMPDIR: home.path },
    args: ['--secrets-file', await home.write('secrets.env', 'TOKEN=sesame-open-now\n')],
  });
  // The start writes it after the proxy is ready.
  await vi.waitFor(() => access(join(dirname(sallyport.caFile), 'ca-bundle.pem')), { timeout: 20_000 });
});
afterAll(async () => {
  await sallyport[Symbol.asyncDispose]();
  await home[Symbol.asyncDispose]();
});

async function filesOf(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const root of [home.path, dirname(dirname(sallyport.caFile))])
    for (const name of await readdir(root, { recursive: true })) {
      const { size, mtimeMs } = await stat(join(root, name));
      found.push(`${name} ${size} ${mtimeMs}`);
    }
  return found.toSorted();
}

describe('leaves on disk', () => {
  it.each(diskRows)('$id', async ({ script: { leaves }, expect: { seen } }) => {
    const before = await filesOf();
    expect(before.length).toBeGreaterThan(2);
    for (let n = 0; n < (leaves.times ?? 1); n += 1) {
      const { text } = await sayHello({ proxy: sallyport, origin: { port: 443 } }, numbered(leaves, n));
      expect(text).toBe(seen.replace('{n}', String(n)));
    }
    expect(await filesOf()).toEqual(before);
  });
});
