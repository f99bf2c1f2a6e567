import { chmod } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { readProxyToken, tokenWarnings } from '../../src/sidecar/secret-files.ts';
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

describe('the file of the proxy token', () => {
  it.each(['644', '640', '604', '620'])('that others may open, by mode %s, is told of', async (mode) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', '0123456789abcdef');
    await chmod(file, Number.parseInt(mode, 8));
    expect(tokenWarnings({ auth: { tokenFile: file } })).toEqual([
      `${file} can be read by other users: chmod 600 it`,
    ]);
  });

  it.each(['600', '400'])('that is its owner’s alone, by mode %s, is not', async (mode) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', '0123456789abcdef');
    await chmod(file, Number.parseInt(mode, 8));
    expect(tokenWarnings({ auth: { tokenFile: file } })).toEqual([]);
  });

  it('that is not there, since none is set, is not', () => {
    expect([...tokenWarnings({ auth: undefined }), ...tokenWarnings({ auth: 'none' })]).toEqual([]);
  });
});
