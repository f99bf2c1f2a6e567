// Fifty thousand requests over HTTP/2; `npm run stress` sends a million.
// @module-tag long
import { expect, it } from 'vitest';
import { runH2Load } from './h2-load.ts';

// The allocator keeps some pages after a load; a leak of a kilobyte per request would be 50 MB.
const MAX_GROWTH_BYTES = 40_000_000;
// Reached on two cores in half a minute, on a machine with other load.
const WITHIN_MS = 240_000;

it(
  'none is lost and none is crossed, on full connections, with resets from both sides and hosts that send GOAWAY',
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
    // Each kind of failure has really occurred.
    for (const count of [counts.reset, counts.cancelled]) expect(count).toBeGreaterThan(50);
    expect(figures.upstreamSessions).toBeGreaterThan(20);
    // Refused twice, once on request and once because of a GOAWAY.
    expect(counts.unread).toBeLessThan(200);
    expect(residentBytes.calm - residentBytes.before).toBeLessThan(MAX_GROWTH_BYTES);
    expect(residentBytes.end - residentBytes.before).toBeLessThan(MAX_GROWTH_BYTES);
  },
  WITHIN_MS,
);
