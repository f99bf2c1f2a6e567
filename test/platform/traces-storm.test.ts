// A short storm of traces: `npm run traces:storm` kills fifty times.
import { chmod } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { createTestDatabase } from '../support/platform-database.ts';
import { createScratch } from '../support/scratch.ts';
import { runTraceStorm } from './storm/trace-storm.ts';

it('two processes take the runs of one tenant, are killed, and lose or double nothing that they accepted', {
  tags: ['long'],
  timeout: 300_000,
}, async () => {
  await using scratch = await createScratch();
  await chmod(scratch.path, 0o711);
  await using database = await createTestDatabase({ isMigrated: false });
  const { errors, runs } = await runTraceStorm({
    ...{ kills: 2, clients: 4, seed: 1, directory: scratch.path },
    ...{ database, owner: database.ownerConnection },
  });
  expect(errors).toEqual([]);
  expect(runs).toBeGreaterThan(20);
});
