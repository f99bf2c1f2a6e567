// Readers of changes are notified at once, after each change, and once for many that they did not read.
import { describe, expect, it } from 'vitest';
import { Changes } from '../../src/box-host/changes.ts';

describe('changes', () => {
  it('are reported at once and after each change, and many at once as one', async () => {
    const changes = new Changes();
    const end = new AbortController();
    const reader = changes.read(end.signal);
    expect((await reader.next()).value).toBe(0);
    const next = reader.next();
    changes.notify();
    expect((await next).value).toBe(1);
    changes.notify();
    changes.notify();
    expect((await reader.next()).value).toBe(3);
    const last = reader.next();
    end.abort();
    expect((await last).done).toBe(true);
  });

  it('know how many read them', async () => {
    const counts: number[] = [];
    const changes = new Changes((count) => counts.push(count));
    const end = new AbortController();
    const [one, two] = [changes.read(end.signal), changes.read(end.signal)];
    await one.next();
    await two.next();
    await one.return();
    end.abort();
    await two.next();
    expect(counts).toEqual([1, 2, 1, 0]);
  });
});
