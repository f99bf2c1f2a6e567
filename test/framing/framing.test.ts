// What our side decides of mutated messages, and what node:http reads behind the proxy. A failure prints what replays it:
// PROPERTY_SEED=<seed> vitest run test/framing. Two hundred thousand: npm run stress -- --part framing.
import { describe, expect, it } from 'vitest';
import { propertySeed } from '../properties/property-seed.ts';
import { runs } from '../support/run-size.ts';
import { runFraming } from './framing-run.ts';

const MESSAGES = runs(10_000);
const seed = propertySeed();

describe('mutated messages', () => {
  it(`are the same requests to us, our records and node (PROPERTY_SEED=${seed})`, {
    timeout: 240_000,
  }, async () => {
    const figures = await runFraming({ messages: MESSAGES, seed });
    expect(figures.errors).toEqual([]);
    expect(figures.messages).toBeGreaterThanOrEqual(MESSAGES);
    expect(figures.whole).toBeGreaterThan(MESSAGES / 2);
    expect(Math.min(figures.cut, ...Object.values(figures.endings))).toBeGreaterThan(MESSAGES / 500);
  });
});
