import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { runEmbeddedStorm } from './storm/embedded-storm.ts';

const KILLS = 4;
const seed = Number(process.env['STORM_SEED'] ?? Date.now() % 1_000_000);

it(`a platform with a database of its own, killed ${KILLS} times while it writes, has what it answered (STORM_SEED=${seed})`, {
  timeout: 240_000,
}, async () => {
  await using scratch = await createScratch();
  // The database runs as somebody else where we are root.
  await chmod(scratch.path, 0o711);
  const directory = join(scratch.path, 'platform');
  const result = await runEmbeddedStorm({ directory, kills: KILLS, clients: 4, calm: [20, 120], seed });
  expect(result.errors).toEqual([]);
  expect(result.startsMs.length).toBeGreaterThanOrEqual(1 + KILLS);
});
