// The listeners of attached boxes: where they are, which ports they get, and what is not held for them.
import { describe, expect, it } from 'vitest';
import { createAttachedEngine, parsePortRange } from '../../src/box-host/attached-engine.ts';
import type { BoxDocument } from '../../src/box-host/box-document.ts';

const box = {} as BoxDocument;
const at = (port: number | undefined) => ({ port, caBundle: async () => '' });

describe('an address with ports', () => {
  it.each([
    ['127.0.0.1:0', { host: '127.0.0.1', first: 0, last: 0 }],
    ['10.0.0.1:20000-20999', { host: '10.0.0.1', first: 20_000, last: 20_999 }],
    ['[::1]:4000', { host: '::1', first: 4000, last: 4000 }],
  ])('%s', (text, expected) => expect(parsePortRange(text)).toEqual(expected));

  it.each(['', '127.0.0.1', 'name:80', '10.0.0.1:5-4', '10.0.0.1:0-5', '10.0.0.1:1-65536', '::1:80'])(
    'not %s',
    (text) => {
      expect(parsePortRange(text)).toMatch(/^must be address:port/);
    },
  );
});

describe('an attached box', () => {
  it('gets the first port that belongs to no box, and later the one that it had', async () => {
    const taken = new Set([5000]);
    const engine = createAttachedEngine({ host: '10.0.0.1', first: 5000, last: 5001 }, () => taken);
    expect((await engine.open(box, at(undefined))).listen).toEqual({
      host: '10.0.0.1',
      port: 5001,
      needsToken: true,
    });
    taken.add(5001);
    expect((await engine.open(box, at(5000))).listen).toMatchObject({ port: 5000 });
    await expect(engine.open(box, at(undefined))).rejects.toMatchObject({ kind: 'no_capacity' });
  });

  it.each(['127.0.0.1', '127.8.8.8', '::1'])('needs no token on %s', async (host) => {
    const engine = createAttachedEngine({ host, first: 0, last: 0 }, () => new Set());
    expect((await engine.open(box, at(undefined))).listen).toEqual({ host, port: 0, needsToken: false });
  });
});
