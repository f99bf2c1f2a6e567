// The document of a sandbox and that of its profile as one: the own entries first, and issues where their author looks.
import { describe, expect, it } from 'vitest';
import { mergeDocuments } from '../../../src/platform/proxy-documents/merged-document.ts';
import { toWholeDocument } from '../../../src/platform/proxy-documents/sealed-document.ts';
import { callbackTo, issuesOf, opaqueRule, parse, ruleFor } from './documents.ts';

function merge(own: object | undefined, profile: object | undefined) {
  return mergeDocuments({
    own: own === undefined ? undefined : parse(own),
    profile: profile === undefined ? undefined : parse(profile),
  });
}

const issues = async (own: object, profile: object) =>
  (await issuesOf(() => merge(own, profile))).map(({ loc, msg }) => [loc, msg]);

describe('a merged document', () => {
  it('has the entries of the sandbox before those of the profile, with their values', () => {
    const own = {
      rules: [opaqueRule('a.example.com')],
      callbacks: [callbackTo('https://one.example.com/', 'x.example.com')],
      no_proxy: ['n.example.com', 'm.example.com'],
    };
    const profile = {
      rules: [ruleFor('a.example.com'), ruleFor('b.example.com')],
      callbacks: [callbackTo('https://two.example.com/', 'y.example.com')],
      no_proxy: ['m.example.com', 'o.example.com'],
    };
    const merged = merge(own, profile);
    expect(toWholeDocument(merged.document)).toEqual({
      rules: [...own.rules, ...profile.rules],
      callbacks: [...own.callbacks, ...profile.callbacks],
      no_proxy: ['n.example.com', 'm.example.com', 'o.example.com'],
    });
    expect(merged.own).toEqual({ rules: 1, callbacks: 1 });
  });

  it('is the only one of the two that there is, or empty', () => {
    const rules = [ruleFor('a.example.com')];
    expect(toWholeDocument(merge({ rules }, undefined).document)).toEqual({ rules });
    expect(toWholeDocument(merge(undefined, { rules }).document)).toEqual({ rules });
    expect(toWholeDocument(merge(undefined, undefined).document)).toEqual({});
  });

  it('denies what either denies, and allows what one of them allows', () => {
    const deny = (...deny_list: string[]) => ({ access_control: { deny_list } });
    const both = merge(deny('a.example.com', 'b.example.com'), deny('b.example.com', 'c.example.com'));
    expect(both.document.access_control).toEqual({
      deny_list: ['a.example.com', 'b.example.com', 'c.example.com'],
    });
    const allow = { access_control: { allow_list: ['a.example.com'] } };
    expect(merge({}, allow).document.access_control).toEqual(allow.access_control);
    expect(merge(allow, {}).document.access_control).toEqual(allow.access_control);
  });

  it.each([
    ['allow_list', 'deny_list'],
    ['deny_list', 'allow_list'],
    ['allow_list', 'allow_list'],
  ])('is rejected where the sandbox has an %s and the profile an %s', async (own, profile) => {
    const found = await issues(
      { access_control: { [own]: ['a.example.com'] } },
      { access_control: { [profile]: ['a.example.com'] } },
    );
    expect(found.map(([loc]) => loc)).toEqual([['body', 'proxy_config', 'access_control']]);
  });

  it('is rejected at the rule of the sandbox that the profile denies', async () => {
    const own = { rules: [ruleFor('a.example.com'), ruleFor('b.example.com')] };
    const found = await issues(own, { access_control: { deny_list: ['b.example.com'] } });
    expect(found.map(([loc]) => loc)).toEqual([['body', 'proxy_config', 'rules', 1, 'match_hosts', 0]]);
  });

  it('is rejected at the profile where the sandbox denies a rule of it', async () => {
    const own = { rules: [ruleFor('a.example.com')], access_control: { allow_list: ['a.example.com'] } };
    for (const [at, rules] of [
      [0, [ruleFor('c.example.com')]],
      [1, [ruleFor('a.example.com'), ruleFor('c.example.com')]],
    ] as const) {
      const found = await issues(own, { rules });
      expect(found).toHaveLength(1);
      expect(found[0]?.[0]).toEqual(['body', 'proxy_profile_id']);
      expect(String(found[0]?.[1])).toContain(`rules[${at}].match_hosts.0 of the proxy profile: `);
    }
  });

  it('is rejected where both together exceed what one document may have', async () => {
    const many = (prefix: string) => ({
      rules: Array.from({ length: 600 }, (_, at) => ruleFor(`${prefix}${at}.example.com`)),
    });
    const found = await issues(many('a'), many('b'));
    expect(found.map(([loc]) => loc)).toEqual([['body', 'proxy_config', 'rules']]);
  });
});
