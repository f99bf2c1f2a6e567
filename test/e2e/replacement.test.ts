// The document replaced fifty times a second under load, as `npm run stress` does it for longer.
import { expect, it } from 'vitest';
import { runReplacements } from './replacement-load.ts';

const PER_SECOND = 50;
const SECONDS = 5;
const MAX_LAG_MS = 100;

it('every request carries the whole of one document and nothing of another, and what is revoked stays away', async () => {
  const figures = await runReplacements({ perSecond: PER_SECOND, seconds: SECONDS, pauseMs: 0 });
  expect(figures).toMatchObject({ violations: [], violationCount: 0, isLastKept: true });
  expect(figures.lagSinceResponse.max).toBeLessThanOrEqual(MAX_LAG_MS);
  // Given up, with nothing sent, where ten documents came while one host was dialled.
  expect(figures.givenUp).toBeLessThanOrEqual(figures.requests / 100);
  // Most documents were met by requests, or this would have tested nothing.
  expect(figures.lagSinceResponse.count).toBeGreaterThan(figures.replacements / 2);
});
