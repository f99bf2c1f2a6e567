import { describe, expect, it } from 'vitest';
import { createBoxChanges } from '../../../src/platform/sandboxes/box-changes.ts';

const forever = { ms: 60_000, signal: new AbortController().signal };

describe('who waits for a box', () => {
  it('looks first, and again when the box changes', async () => {
    const changes = createBoxChanges();
    let looks = 0;
    const found = changes.waitFor(
      'a',
      async () => {
        looks += 1;
        if (looks === 1) queueMicrotask(() => changes.emit('a'));
        return looks === 2 ? 'ready' : undefined;
      },
      forever,
    );
    expect([await found, looks]).toEqual(['ready', 2]);
  });

  it('misses no change that comes while it looks', async () => {
    const changes = createBoxChanges();
    let looks = 0;
    const look = async (): Promise<string | undefined> => {
      looks += 1;
      changes.emit();
      return looks === 3 ? 'ready' : undefined;
    };
    expect(await changes.waitFor('a', look, forever)).toBe('ready');
  });

  it('gets undefined at the end of its time, and looks once in any case', async () => {
    const changes = createBoxChanges();
    let looks = 0;
    const look = async (): Promise<undefined> => void (looks += 1);
    expect(await changes.waitFor('a', look, { ...forever, ms: 0 })).toBeUndefined();
    expect(looks).toBe(1);
  });

  it('leaves with its signal', async () => {
    const changes = createBoxChanges();
    const leaving = new AbortController();
    const look = async (): Promise<undefined> => void leaving.abort(new Error('left'));
    const waiting = changes.waitFor('a', look, { ms: 60_000, signal: leaving.signal });
    await expect(waiting).rejects.toThrow('left');
  });
});
