// @module-tag long
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { runEmbeddedStorm } from './storm/embedded-storm.ts';

const KILLS = 4;
const seed = Number(process.env['STORM_SEED'] ?? Date.now() % 1_000_000);

it(`a platform with an embedded database, killed ${KILLS} times while it writes, has every acknowledged write (STORM_SEED=${seed})`, {
  timeout: 240_000,
}, async () => {
  await using scratch = await createScratch();
  // Under root the database runs as another user.
  await chmod(scratch.path, 0o711);
  const directory = join(scratch.path, 'platform');
  const result = await runEmbeddedStorm({
    directory,
    kills: KILLS,
    clients: 4,
    responsesBetweenKills: [20, 120],
    seed,
  });
  expect(result.errors).toEqual([]);
  expect(result.startsMs.length).toBeGreaterThanOrEqual(1 + KILLS);
});
