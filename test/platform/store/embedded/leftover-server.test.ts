// A server that was left behind and ends by itself while it is looked for.
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { stopLeftoverServer } from '../../../../src/platform/store/embedded/leftover-server.ts';
import { createScratch } from '../../../support/scratch.ts';

it('a server that removes its postmaster.pid while it is looked for has been stopped', async () => {
  const { path, ...scratch } = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  const cluster = join(path, 'cluster');
  await mkdir(cluster);
  const file = join(cluster, 'postmaster.pid');
  await writeFile(file, '2147483646\n');
  // It still listens when its process is gone from the list, and accepts nobody.
  const server = createServer((socket) => void rm(file).then(() => socket.destroy()));
  await new Promise<void>((resolve) => server.listen(join(cluster, '.s.PGSQL.5432'), resolve));
  onTestFinished(() => void server.close());
  await stopLeftoverServer(
    { path, cluster, account: undefined },
    { host: cluster, user: 'a', database: 'a' },
  );
  expect(existsSync(file)).toBe(false);
});
