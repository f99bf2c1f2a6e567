// Every response belongs to its request and no request arrives twice, whatever hosts and clients do. A failure prints what
// replays it: PROPERTY_SEED=<seed> vitest run test/properties/responses.test.ts.
import { describe, expect, it } from 'vitest';
import { runs } from '../support/run-size.ts';
import { runPipelines } from './pipeline-run.ts';
import { propertySeed } from './property-seed.ts';
import { runStreams } from './stream-run.ts';

const seed = propertySeed();
const TIMEOUT_MS = 120_000;

describe(`whatever hosts and clients do (PROPERTY_SEED=${seed}),`, () => {
  it('the responses of a pipeline are those of its requests, in order', { timeout: TIMEOUT_MS }, async () => {
    const { error, requests, responded, refused, lost } = await runPipelines({ crowds: runs(100, 20), seed });
    expect(error).toBeUndefined();
    expect(responded + refused + lost).toBe(requests);
    // Neither all calm nor all lost.
    expect(responded).toBeGreaterThan(requests / 4);
    expect(Math.min(refused, lost)).toBeGreaterThan(requests / 100);
  });

  it('the response on a stream is that of its request', { timeout: TIMEOUT_MS }, async () => {
    const { error, verdicts } = await runStreams({ crowds: runs(60, 12), seed });
    expect(error).toBeUndefined();
    expect(Object.keys(verdicts).toSorted()).toEqual(expect.arrayContaining(['cancelled', 'reset', 'whole']));
  });
});
