// What a sidecar gets of a document: compiled with the secrets of the workspace first, so that none is rejected there.
import { describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../src/base/domain-error.ts';
import { Secret } from '../../../src/base/secret.ts';
import { mergeDocuments } from '../../../src/platform/proxy-documents/merged-document.ts';
import { resolveDocument, resolveUsable } from '../../../src/platform/proxy-documents/resolved-document.ts';
import { HUSH, issuesOf, opaqueRule, parse, ruleFor, secretRule } from './documents.ts';

function resolve(own: object, secrets: Readonly<Record<string, string>>, profile?: object) {
  const merged = mergeDocuments({ own: parse(own), profile: profile && parse(profile) });
  return resolveDocument(
    merged,
    new Map(Object.entries(secrets).map(([name, value]) => [name, new Secret(value)])),
  );
}

describe('a resolved document', () => {
  it('has its opaque values, and the secrets that it names and no others', async () => {
    const own = { rules: [opaqueRule('a.example.com'), secretRule('b.example.com', 'Bearer {TOKEN}')] };
    const { document, secrets } = await resolve(own, { TOKEN: 'hush', OTHER: 'x' });
    expect(document).toEqual(own);
    expect([...secrets].map(([name, value]) => [name, value.reveal()])).toEqual([['TOKEN', 'hush']]);
  });

  it('lacks a secret: every header that names it is an issue', async () => {
    const own = {
      rules: [
        secretRule('a.example.com', 'Bearer {TOKEN}'),
        ruleFor('b.example.com'),
        secretRule('c.example.com', '{OTHER}{ABSENT}'),
        { ...secretRule('d.example.com', '{DISABLED}'), enabled: false },
      ],
    };
    const issues = await issuesOf(() => resolve(own, { OTHER: 'x' }));
    expect(issues).toEqual([
      {
        loc: ['body', 'proxy_config', 'rules', 0, 'headers', 0, 'value'],
        msg: 'The workspace secret TOKEN does not exist: set it by POST to /api/v1/workspaces/current/secrets first',
        type: 'value_error',
      },
      {
        loc: ['body', 'proxy_config', 'rules', 2, 'headers', 0, 'value'],
        msg: 'The workspace secret ABSENT does not exist: set it by POST to /api/v1/workspaces/current/secrets first',
        type: 'value_error',
      },
    ]);
  });

  it('lacks a secret of the profile: the issue is at the profile', async () => {
    const own = { rules: [ruleFor('a.example.com')] };
    const issues = await issuesOf(() =>
      resolve(own, {}, { rules: [secretRule('b.example.com', '{TOKEN}')] }),
    );
    expect(issues).toEqual([
      {
        loc: ['body', 'proxy_profile_id'],
        msg: 'rules[0].headers.0.value of the proxy profile: The workspace secret TOKEN does not exist: set it by POST to /api/v1/workspaces/current/secrets first',
        type: 'value_error',
      },
    ]);
  });

  it('does not compile with a secret that is no header value, and the issue does not repeat it', async () => {
    const own = { rules: [secretRule('a.example.com', 'Bearer {TOKEN}')] };
    for (const value of [`${HUSH}\n`, `${HUSH}ü`, HUSH.repeat(300)]) {
      const issues = await issuesOf(() => resolve(own, { TOKEN: value }));
      expect(issues.map(({ loc }) => loc)).toEqual([
        ['body', 'proxy_config', 'rules', 0, 'headers', 0, 'value'],
      ]);
      expect(JSON.stringify(issues)).not.toContain(HUSH);
    }
  });
});

describe('a document whose secrets have gone since it was stored', () => {
  const rules = [
    secretRule('a.example.com', 'Bearer {GONE}'),
    secretRule('b.example.com', 'Bearer {TOKEN}'),
    { ...secretRule('c.example.com', '{NEWLINE}'), name: 'third' },
  ];

  it('refuses the requests of the rules that need them, and has all others', async () => {
    const merged = mergeDocuments({ own: undefined, profile: parse({ rules }) });
    const values = { TOKEN: 'hush', NEWLINE: `${HUSH}\n` };
    const secrets = new Map(Object.entries(values).map(([name, value]) => [name, new Secret(value)]));
    const usable = await resolveUsable(merged, secrets);
    expect(usable.document).toMatchObject({
      rules: [{ refuse: expect.stringContaining('GONE does not exist') }, rules[1], { name: 'third' }],
    });
    expect(usable.document).not.toHaveProperty('rules.1.refuse');
    expect(usable.document).toHaveProperty('rules.2.refuse', expect.stringContaining('not a valid header'));
    expect([...usable.secrets.keys()]).toEqual(['TOKEN']);
    expect(usable.refused).toEqual([
      { name: 'rules[0]', reason: expect.stringContaining('GONE does not exist') },
      { name: 'third', reason: expect.stringContaining('not a valid header') },
    ]);
    expect(JSON.stringify(usable.refused)).not.toContain(HUSH);
  });

  it('is rejected where a rule that refuses its requests cannot be applied either', async () => {
    const headers = [1, 2, 3, 4, 5].map((at) => ({
      ...{ name: `X-Large-${at}`, type: 'opaque', value: `${at}`.repeat(8_000) },
    }));
    const rule = { match_hosts: ['large.example.com'], scrub: 'body', headers };
    const merged = mergeDocuments({ own: undefined, profile: parse({ rules: [rule] }) });
    await expect(resolveUsable(merged, new Map())).rejects.toThrow(InvalidInput);
  });

  it('is as it was written once they are there again', async () => {
    const merged = mergeDocuments({ own: undefined, profile: parse({ rules: rules.slice(0, 1) }) });
    const usable = await resolveUsable(merged, new Map([['GONE', new Secret('back')]]));
    expect(usable).toMatchObject({ document: { rules: rules.slice(0, 1) }, refused: [] });
  });
});
