// A config that passes between threads keeps every value, and a value that the receiver has does not pass.
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import type { ProxyConfig } from '../../../src/policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import {
  fromSentValues,
  opaqueValues,
  toSentValues,
  withValues,
} from '../../../src/sidecar/sandboxes/config-transfer.ts';

const opaque = (value: string): object => ({ name: `X-${value}`, type: 'opaque', value });
const plaintext = { name: 'X-Plain', type: 'plaintext', value: 'plain' };

function parse(document: unknown): ProxyConfig {
  const parsed = parseProxyConfig(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value;
}

const config = parse({
  rules: [
    { match_hosts: ['a.test'], headers: [opaque('one'), plaintext, opaque('two')] },
    { match_hosts: ['b.test'], headers: [plaintext] },
    { match_hosts: ['c.test'], enabled: false, headers: [opaque('three')] },
  ],
  callbacks: [
    {
      match_hosts: ['d.test'],
      url: 'http://127.0.0.1:1/x',
      ttl_seconds: 60,
      request_headers: [plaintext, opaque('four')],
    },
  ],
  no_proxy: ['e.test'],
});

const texts = (secrets: readonly Secret[]): readonly (string | undefined)[] =>
  secrets.map((secret) => ['one', 'two', 'three', 'four'].find((text) => secret.equals(text)));

describe('a config', () => {
  it('has its opaque values in order, those of disabled entries too', () => {
    expect(texts(opaqueValues(config))).toEqual(['one', 'two', 'three', 'four']);
  });

  it('as JSON has no value, and the values beside it make it whole again', () => {
    const json = JSON.stringify(config);
    expect(json).not.toMatch(/"(one|two|three|four)"/);
    const sent = toSentValues(config, []);
    expect(sent).toEqual(['one', 'two', 'three', 'four']);
    const received = withValues(JSON.parse(json), fromSentValues(sent, []));
    expect(received).toStrictEqual(config);
    expect(texts(opaqueValues(received))).toEqual(['one', 'two', 'three', 'four']);
  });

  it('sends the number of a value that the receiver has, found by identity alone', () => {
    const kept = opaqueValues(config).slice(1, 3);
    const sent = toSentValues(config, kept);
    expect(sent).toEqual(['one', 0, 1, 'four']);
    const received = fromSentValues(sent, kept);
    expect(received[1]).toBe(kept[0]);
    expect(received[2]).toBe(kept[1]);
    expect(toSentValues(config, [new Secret('one')])[0]).toBe('one');
  });

  it('is not made whole with too few values, nor with a number of none', () => {
    expect(() => withValues(config, [new Secret('one')])).toThrow('more opaque headers than values');
    expect(() => fromSentValues([1], [new Secret('one')])).toThrow('not one of those');
  });
});
