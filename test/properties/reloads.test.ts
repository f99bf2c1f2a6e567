// A request sees one document from start to end, whatever the schedule. A failure prints what replays it:
// PROPERTY_SEED=<seed> vitest run test/properties/reloads.test.ts.
import { describe, expect, it } from 'vitest';
import { propertySeed } from './property-seed.ts';
import { runReloads } from './reload-run.ts';

const seed = propertySeed();

describe('whenever documents are put,', () => {
  const title = `what a request carries is of one document (PROPERTY_SEED=${seed})`;
  it(title, { timeout: 120_000 }, async () => {
    const { error, documents, marked, unmarked, overtaken } = await runReloads({ schedules: 30, seed });
    expect(error).toBeUndefined();
    expect(documents).toBeGreaterThan(80);
    expect(Math.min(marked, unmarked, overtaken)).toBeGreaterThan(10);
  });
});
