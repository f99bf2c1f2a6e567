// The document replaced fifty times a second under load, as `npm run stress` does it for longer.
// @module-tag long
import { expect, it } from 'vitest';
import { runReplacements } from './replacement-load.ts';

const PER_SECOND = 50;
const SECONDS = 5;
const MAX_LAG_MS = 100;

it('every request has all headers of exactly one document, and none of a revoked one', async () => {
  const figures = await runReplacements({ perSecond: PER_SECOND, seconds: SECONDS, pauseMs: 0 });
  expect(figures).toMatchObject({ violations: [], violationCount: 0, isLastKept: true });
  expect(figures.lagSinceResponse.max).toBeLessThanOrEqual(MAX_LAG_MS);
  // Rejected without sending anything when ten documents were activated during one dial.
  expect(figures.abandoned).toBeLessThanOrEqual(figures.requests / 100);
  // Requests must have used most documents, or this would have tested nothing.
  expect(figures.lagSinceResponse.count).toBeGreaterThan(figures.replacements / 2);
});
