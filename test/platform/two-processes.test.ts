// @module-tag long
import { expect, it } from 'vitest';
import { createTestDatabase } from '../support/platform-database.ts';
import { createScratch } from '../support/scratch.ts';
import { responsesIn } from './storm/storm-ledger.ts';
import { runStorm } from './storm/storm.ts';

const KILLS = 5;
const seed = Number(process.env['STORM_SEED'] ?? Date.now() % 1_000_000);

it(`two processes on one database, one killed ${KILLS} times under load, lose and duplicate nothing (STORM_SEED=${seed})`, {
  timeout: 240_000,
}, async () => {
  await using database = await createTestDatabase({ isMigrated: false });
  await using scratch = await createScratch();
  const result = await runStorm({
    database: { url: database.url, ownerUrl: database.ownerUrl },
    owner: database.ownerConnection,
    directory: scratch.path,
    kills: KILLS,
    clients: 6,
    responsesBetweenKills: [20, 120],
    jobs: 4,
    seed,
  });
  expect(result.errors).toEqual([]);
  expect(responsesIn(result.ledger)).toBeGreaterThan(KILLS * 20);
  expect(result.startsMs.length).toBeGreaterThanOrEqual(2 + KILLS);
});
