import { describe, expect, it } from 'vitest';
import { parseAuthority } from '../../../src/policy/authority/authority.ts';
import { type Protocol, createAlpnHints, offeredProtocols } from '../../../src/proxy/upstream/alpn.ts';

describe('what a client offers', () => {
  it.each([
    [undefined, ['http/1.1']],
    [['h2'], ['h2']],
    [
      ['http/1.1', 'h2'],
      ['http/1.1', 'h2'],
    ],
    [
      ['h2', 'h2', 'http/1.1'],
      ['h2', 'http/1.1'],
    ],
    [['\x0a\x0a', 'h2', 'spdy/3', 'http/1.0'], ['h2']],
    [['h2c', 'H2', 'http/1.0'], []],
  ])('%j is %j to us', (alpn, offered) => {
    expect(offeredProtocols(alpn)).toEqual(offered);
  });
});

describe('a hint', () => {
  const [one, other] = ['a.test:443', 'a.test:8443'].map((text) => parseAuthority(text));
  if (typeof one !== 'object' || typeof other !== 'object') throw new Error('not an authority');
  const both: readonly Protocol[] = ['h2', 'http/1.1'];

  it('is for one authority and one list', () => {
    const hints = createAlpnHints();
    hints.set(one, both, 'http/1.1');
    hints.set(one, ['http/1.1', 'h2'], 'h2');
    expect(hints.get(one, both)).toBe('http/1.1');
    expect(hints.get(one, ['http/1.1', 'h2'])).toBe('h2');
    expect(hints.get(one, ['h2'])).toBeUndefined();
    expect(hints.get(other, both)).toBeUndefined();
  });

  it('is forgotten with all others of its authority, and by itself after ten minutes', () => {
    let now = 0;
    const hints = createAlpnHints(() => now);
    hints.set(one, both, 'h2');
    hints.set(other, both, 'h2');
    hints.forget(one);
    expect([hints.get(one, both), hints.get(other, both)]).toEqual([undefined, 'h2']);
    now = 599_999;
    expect(hints.get(other, both)).toBe('h2');
    now = 600_000;
    expect(hints.get(other, both)).toBeUndefined();
  });

  it('crowds out the oldest of a thousand', () => {
    const hints = createAlpnHints();
    for (let port = 1; port <= 1_001; port += 1) hints.set({ ...one, text: `a.test:${port}` }, both, 'h2');
    expect(hints.get({ ...one, text: 'a.test:1' }, both)).toBeUndefined();
    expect(hints.get({ ...one, text: 'a.test:2' }, both)).toBe('h2');
  });
});
