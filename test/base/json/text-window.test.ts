import { describe, expect, it } from 'vitest';
import { LOOKAHEAD, TextWindow } from '../../../src/base/json/text-window.ts';

describe('the window of a text', () => {
  it('shows enough of the pieces for a token, and takes no more', () => {
    let taken = 0;
    function* pieces(): Generator<string> {
      for (; taken < 100; taken += 1) yield 'a'.repeat(10_000);
    }
    const window = new TextWindow(pieces());
    window.fill();
    expect(taken).toBe(Math.floor(LOOKAHEAD / 10_000));
    expect(window.match(/a{65536}/y)).toHaveLength(LOOKAHEAD);
    window.fill();
    expect(window.position).toBe(LOOKAHEAD);
    expect(window.match(/a{65536}/y)).toHaveLength(LOOKAHEAD);
  });

  it('counts positions from the beginning, and ends with the last piece', () => {
    const window = new TextWindow(['', ' ', 'x', '']);
    window.fill();
    expect([window.isSpace(), window.character, window.position]).toEqual([true, ' ', 0]);
    window.skip();
    window.fill();
    expect([window.isSpace(), window.match(/y/y), window.match(/x/y), window.position]).toEqual([
      ...[false, '', 'x', 2],
    ]);
    window.fill();
    expect([window.isSpace(), window.character]).toEqual([false, undefined]);
  });
});
