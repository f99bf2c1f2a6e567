// The order of versions is what decides which nodes run.
import { describe, expect, it } from 'vitest';
import { createNextVersion } from '../../../src/agent-worker/checkpoints/channel-version.ts';

describe('the next version of a channel', () => {
  it('sorts after the one before, as text and by the rules of a language', () => {
    let version = createNextVersion(undefined);
    for (let index = 0; index < 200; index += 1) {
      const next = createNextVersion(version);
      expect(next > version && next.localeCompare(version) > 0).toBe(true);
      version = next;
    }
  });

  it('differs between two branches, and goes on from the numbers of other savers', () => {
    const version = createNextVersion(41);
    expect(version).toMatch(/^0{30}42\.[0-9a-f]{16}$/);
    expect(createNextVersion(41)).not.toBe(version);
  });
});
