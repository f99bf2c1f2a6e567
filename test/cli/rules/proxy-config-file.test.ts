import { describe, expect, it } from 'vitest';
import { recognize } from '../../../src/cli/rules/proxy-config-file.ts';

describe('a document is recognized', () => {
  it.each([
    ['as a config without a key of a proxy_config', { listen: '127.0.0.1:1' }, 'config', []],
    ['as a config if proxy_config names a file', { proxy_config: 'rules.json' }, 'config', []],
    ['as a config if it is empty', {}, 'config', []],
    ['as a config if it is no object', [], 'config', []],
    ['as a proxy_config by each of its keys', { no_proxy: [] }, 'proxy_config', []],
    ['inside what the admin API returns', { proxy_config: { rules: [] } }, 'proxy_config', ['proxy_config']],
  ])('%s', (_, document, kind, loc) => {
    expect(recognize(document)).toMatchObject({ kind, loc });
  });

  it('with a text for opaque values that the API does not return, and for no other', () => {
    const headers = [
      { name: 'A', type: 'opaque', is_set: true },
      { name: 'B', type: 'opaque', is_set: false },
      { name: 'C', type: 'opaque', is_set: true, value: 'given' },
    ];
    const { document } = recognize({ proxy_config: { rules: [{ headers }] } });
    expect(document).toMatchObject({
      rules: [{ headers: [{ value: expect.any(String) }, headers[1], { value: 'given' }] }],
    });
  });
});
