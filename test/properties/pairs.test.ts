// The rules against their model, over generated documents and requests. A failure prints what replays it:
// PROPERTY_SEED=<seed> vitest run test/properties/pairs.test.ts. Two million: npm run stress -- --part pairs.
import { describe, expect, it } from 'vitest';
import { runs } from '../support/run-size.ts';
import { runPairs } from './pair-run.ts';
import { propertySeed } from './property-seed.ts';

const seed = propertySeed();
/** What two million pairs show of each outcome is more than 1 %; a hundredth of them scatters. */
const LEAST_SHARE = 0.005;
const OUTCOMES = 22;

describe('whatever the document and the request,', () => {
  it(`the gate does as the model does (PROPERTY_SEED=${seed})`, () => {
    const { error, outcomes, pairs, refusedDocuments, documents } = runPairs({
      documents: runs(1_000, 250),
      seed,
    });
    expect(error).toBeUndefined();
    expect(pairs).toBeGreaterThan(documents * 18);
    expect(refusedDocuments).toBeLessThan(documents / 4);
    const rare = [...outcomes].filter(([, count]) => count < pairs * LEAST_SHARE);
    expect(rare).toEqual([]);
    expect(outcomes.size).toBe(OUTCOMES);
  });
});
