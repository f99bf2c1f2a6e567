// A proxy_config in the body of a request: the same rules as in a sidecar, with issues where public clients look for them.
import { describe, expect, it } from 'vitest';
import { parseDocument, secretNamesIn } from '../../../src/platform/proxy-documents/parsed-document.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import { callbackTo, HUSH, issuesOf, opaqueRule, open, parse, ruleFor, secretRule } from './documents.ts';

describe('a document', () => {
  it('is parsed as a sidecar parses it', () => {
    const input = { rules: [opaqueRule('a.example.com')], no_proxy: ['b.example.com'] };
    const parsed = parseProxyConfig(input);
    expect(JSON.stringify(parse(input))).toBe(JSON.stringify(parsed.ok && parsed.value));
    expect(JSON.stringify(parse(input))).not.toContain(HUSH);
  });

  it.each([
    ['no object', [], ['body', 'proxy_config']],
    ['an unknown field', { rulez: [] }, ['body', 'proxy_config', 'rulez']],
    [
      'a wildcard that is too broad',
      { rules: [ruleFor('*.com')] },
      ['body', 'proxy_config', 'rules', 0, 'match_hosts', 0],
    ],
    [
      'an opaque header without a value',
      { rules: [opaqueRule('a.example.com', {})] },
      ['body', 'proxy_config', 'rules', 0, 'headers', 0, 'value'],
    ],
    [
      'a workspace secret for a callback',
      {
        callbacks: [
          {
            ...callbackTo('https://c.example.com/'),
            request_headers: [{ name: 'A', type: 'workspace_secret', value: '{T}' }],
          },
        ],
      },
      ['body', 'proxy_config', 'callbacks', 0, 'request_headers', 0, 'type'],
    ],
    [
      'a ttl that is too short',
      { callbacks: [{ ...callbackTo('https://c.example.com/'), ttl_seconds: 59 }] },
      ['body', 'proxy_config', 'callbacks', 0, 'ttl_seconds'],
    ],
  ])('with %s is rejected at its place', async (_, input, loc) => {
    const issues = await issuesOf(() => parse(input));
    expect(issues.map((issue) => issue.loc.slice(0, loc.length))).toContainEqual(loc);
  });

  it('keeps the opaque values that an update leaves out, but for another destination', async () => {
    const stored = parse({ rules: [opaqueRule('a.example.com'), ruleFor('b.example.com')] });
    const again = { rules: [opaqueRule('a.example.com', { is_set: true })] };
    const [rule] = parseDocument(again, open, stored).rules;
    const [header] = rule?.headers ?? [];
    expect(header?.type === 'opaque' && header.value.equals(HUSH)).toBe(true);
    const elsewhere = { rules: [opaqueRule('evil.example.com', { is_set: true })] };
    const issues = await issuesOf(() => parseDocument(elsewhere, open, stored));
    expect(issues.map(({ loc, type }) => [loc, type])).toEqual([
      [['body', 'proxy_config', 'rules', 0, 'headers', 0, 'value'], 'value_error'],
    ]);
  });

  it('has at most 131,072 characters, and a longer one is not parsed', async () => {
    const ofLength = (length: number) => ({
      no_proxy: ['x'.repeat(length - JSON.stringify({ no_proxy: [''] }).length)],
    });
    const locs = async (length: number) =>
      (await issuesOf(() => parse(ofLength(length)))).map(({ loc }) => loc);
    expect(await locs(131_072)).toEqual([['body', 'proxy_config', 'no_proxy', 0]]);
    expect(await locs(131_073)).toEqual([['body', 'proxy_config']]);
  });

  it('names the workspace secrets of its enabled rules, each once', () => {
    const document = parse({
      rules: [
        secretRule('a.example.com', 'Bearer {A}'),
        secretRule('b.example.com', '{B}:{A}'),
        { ...secretRule('c.example.com', '{C}'), enabled: false },
      ],
    });
    expect(secretNamesIn(document)).toEqual(['A', 'B']);
  });
});
