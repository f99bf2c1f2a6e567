// The automaton of chunk extensions against their grammar: what follows the first semicolon.
import { describe, expect, it } from 'vitest';
import {
  EXTENSION_MALFORMED,
  EXTENSION_START,
  mayEndExtension,
  nextExtensionState,
} from '../../src/http1/chunk-extension.ts';

function endsWell(text: string): boolean {
  const bytes = Buffer.from(text, 'latin1');
  let state = EXTENSION_START;
  for (let at = 0; at < bytes.length && state !== EXTENSION_MALFORMED; at += 1)
    state = nextExtensionState(state, bytes, at);
  return state !== EXTENSION_MALFORMED && mayEndExtension(state);
}

describe('a chunk extension', () => {
  it.each(['a', 'a=b', 'a;b', 'a=b;c="d"', 'a="x;y=z"', 'a="\\""', 'a=""', 'a="\xe9\t"'])(
    '%j is valid',
    (text) => {
      expect(endsWell(text)).toBe(true);
    },
  );

  it.each([
    ...['', ';', 'a;', 'a=', 'a=;b', '=a', 'a =b', 'a= b', 'a=b=c', '"a"'],
    ...['a="b', 'a="b"c', 'a="b\\', 'a="\n"', 'a="\\\r"', 'a=b\0', 'a\n'],
  ])('%j is not', (text) => {
    expect(endsWell(text)).toBe(false);
  });
});
