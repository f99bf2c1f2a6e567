// Fifty thousand requests over HTTP/2, as `npm run stress` makes a million of them.
import { expect, it } from 'vitest';
import { runH2Load } from './h2-load.ts';

// A load leaves pages behind that the allocator keeps; a leak of a kilobyte a request would be 50 MB.
const MAX_GROWTH_BYTES = 40_000_000;
// What is read on two cores in half a minute, on a machine that has other things to do.
const WITHIN_MS = 240_000;

it(
  'none is lost and none is crossed, on full connections, through resets of both sides and hosts that leave',
  async () => {
    const figures = await runH2Load({ warmUp: 10_000, calm: 30_000, disturbed: 10_000 });
    const { perSecond, latency, residentBytes, counts } = figures;
    console.info(
      `${perSecond.toFixed(0)} requests/s, p99 ${latency.p99.toFixed(0)} ms, ${JSON.stringify(counts)}`,
    );
    expect(figures.errors).toEqual([]);
    expect(figures).toMatchObject({
      counts: { lost: 0, crossed: 0 },
      hanging: 0,
      misrecorded: 0,
      isSameProcess: true,
    });
    // Each was really tried.
    for (const count of [counts.reset, counts.cancelled]) expect(count).toBeGreaterThan(50);
    expect(figures.upstreamSessions).toBeGreaterThan(20);
    // Refused twice, once by the host's wish and once because it left.
    expect(counts.unread).toBeLessThan(200);
    expect(residentBytes.calm - residentBytes.before).toBeLessThan(MAX_GROWTH_BYTES);
    expect(residentBytes.end - residentBytes.before).toBeLessThan(MAX_GROWTH_BYTES);
  },
  WITHIN_MS,
);
