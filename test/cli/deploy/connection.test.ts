import { describe, expect, it } from 'vitest';
import { isExposed, readConnection } from '../../../src/cli/deploy/connection.ts';
import { createScratch } from '../../support/scratch.ts';

const KEY = 'c4n4ry-key';

describe('the connection', () => {
  it('is that of the options before that of the variables', async () => {
    const env = { SALLYPORT_API_URL: 'https://two.test', SALLYPORT_API_KEY: 'two' };
    const { url, key } = await readConnection(
      { 'host-url': 'https://one.test/api-host', 'api-key': KEY },
      env,
    );
    expect([url.href, key.equals(KEY)]).toEqual(['https://one.test/api-host', true]);
    const other = await readConnection({}, { ...env, SALLYPORT_API_WORKSPACE: '' });
    expect([other.url.href, other.key.equals('two'), other.workspace]).toEqual([
      'https://two.test/',
      true,
      undefined,
    ]);
  });

  it('has the key of a file, without the end of its line', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('key', `${KEY}\r\n`);
    const { url, key } = await readConnection({}, { SALLYPORT_API_KEY_FILE: file, SALLYPORT_API_KEY: '' });
    expect([url.href, key.equals(KEY)]).toEqual(['http://127.0.0.1:8080/', true]);
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ['no key', {}, /no API key is given: set SALLYPORT_API_KEY/],
    [
      'a file that is not there',
      { 'api-key-file': '/nonexistent' },
      /--api-key-file: \/nonexistent cannot be read \(ENOENT\)/,
    ],
    ['a key of two lines', { 'api-key': `${KEY}\n${KEY}` }, /--api-key must be one API key/],
    [
      'a URL of another kind',
      { 'host-url': 'ftp://x', 'api-key': KEY },
      /--host-url must be the URL of a platform/,
    ],
    [
      'a URL with a password',
      { 'host-url': `http://u:${KEY}@x`, 'api-key': KEY },
      /--host-url must have neither a user/,
    ],
    ['a workspace by its name', { 'api-key': KEY, workspace: 'w' }, /--workspace must be the id/],
  ])('with %s is an error without the key', async (_, flags, message) => {
    const failed = readConnection(flags, {});
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.not.toThrow(KEY);
  });
});

it.each([
  ['http://127.0.0.1:8080', false],
  ['http://127.1.2.3', false],
  ['http://[::1]:8080', false],
  ['http://platform.localhost', false],
  ['https://platform.test', false],
  ['http://platform.test', true],
  ['http://10.0.0.1:8080', true],
  ['http://localhost.test', true],
])('the key is exposed at %s: %s', async (url, expected) => {
  expect(isExposed(await readConnection({ 'host-url': url, 'api-key': KEY }, {}))).toBe(expected);
});
