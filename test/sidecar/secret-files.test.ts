import { describe, expect, it } from 'vitest';
import { readProxyToken } from '../../src/sidecar/secret-files.ts';
import { createScratch } from '../support/scratch.ts';

describe('the proxy token', () => {
  it.each(['0123456789abcdef', '0123456789abcdef\n', '0123456789abcdef\r\n'])(
    'is the text of its file without the line break: %j',
    async (text) => {
      await using scratch = await createScratch();
      expect(readProxyToken(await scratch.write('token', text))).toBe('0123456789abcdef');
    },
  );

  it('that can be guessed is refused, and not quoted', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', '0123456789abcde\n');
    expect(() => readProxyToken(file)).toThrow(`${file}: the proxy token should have at least 16 characters`);
  });
});
