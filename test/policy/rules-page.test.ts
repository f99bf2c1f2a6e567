// The tables of docs/rules.md: each row is asked of the parser and of the compiled rules.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Issue } from '../../src/base/schema.ts';
import { parseAuthority } from '../../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../../src/policy/compile.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import type { Policy } from '../../src/policy/policy.ts';

const page = readFileSync(new URL('../../docs/rules.md', import.meta.url), 'utf8');

/** The rows of the first table under a heading that has this head, cell by cell. */
function tableOf(heading: string, head: string): readonly (readonly string[])[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  const [, table = ''] = section.split(`${head}\n`);
  const [rows = ''] = table.split('\n\n');
  return rows
    .split('\n')
    .slice(1)
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

const codesIn = (cell: string = ''): readonly string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

/** [entry, text, whether it matches] for each text of the table. */
function casesOf(heading: string, head: string) {
  const rows = tableOf(heading, head);
  return rows.flatMap(([entry, yes, no]) =>
    [
      ...codesIn(yes).map((text) => [text, true] as const),
      ...codesIn(no).map((text) => [text, false] as const),
    ].map(([text, matches]) => [codesIn(entry)[0] ?? '', text, matches] as const),
  );
}

const headers = [{ name: 'X', type: 'plaintext', value: 'v' }];

function compiled(document: unknown): Policy {
  const parsed = parseProxyConfig(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  const policy = compileProxyConfig(parsed.value, () => undefined, 1);
  if (!policy.ok) throw new Error(JSON.stringify(policy.issues));
  return policy.value;
}

function authorityOf(text: string) {
  const authority = parseAuthority(text, 443);
  if (typeof authority === 'string') throw new Error(`${text}: ${authority}`);
  return authority;
}

const issuesOf = (document: unknown): readonly Issue[] => {
  const parsed = parseProxyConfig(document);
  return parsed.ok ? [] : parsed.issues;
};

describe('the table of host entries', () => {
  const cases = casesOf('Hosts', '| entry | matches | does not match |');

  it('has rows', () => expect(cases.length).toBeGreaterThan(15));

  it.each(cases)('%s and %s: %s', (entry, host, matches) => {
    const policy = compiled({ rules: [{ match_hosts: [entry], headers }] });
    expect(policy.coverOf(authorityOf(host)).kind).toBe(matches ? 'intercept' : 'tunnel');
  });

  const rejected = tableOf('Hosts', '| entry | message |');

  it('has rejected entries', () => expect(rejected.length).toBeGreaterThan(10));

  it.each(rejected)('%s is rejected: %s', (entry = '', message) => {
    const [host = ''] = codesIn(entry);
    expect(issuesOf({ rules: [{ match_hosts: [host], headers }] }).map(({ msg }) => msg)).toEqual([message]);
  });
});

describe('the table of paths', () => {
  const cases = casesOf('Paths', '| pattern | matches | does not match |');

  it('has rows', () => expect(cases.length).toBeGreaterThan(15));

  it.each(cases)('%s and %s: %s', (pattern, path, matches) => {
    const policy = compiled({ rules: [{ match_hosts: ['a.test'], match_paths: [pattern], headers }] });
    expect(policy.decide(authorityOf('a.test'), path)).toMatchObject({ apply: matches ? 'rule' : 'none' });
  });

  const rejected = tableOf('Paths', '| pattern | message |');

  it('has rejected patterns', () => expect(rejected.length).toBeGreaterThan(3));

  it.each(rejected)('%s is rejected: %s', (cell = '', message) => {
    const [pattern = ''] = codesIn(cell);
    const document = { rules: [{ match_hosts: ['a.test'], match_paths: [pattern], headers }] };
    expect(issuesOf(document).map(({ msg }) => msg)).toEqual([message]);
  });

  const ambiguous = tableOf('Paths', '| path | cause |');

  it('has ambiguous paths', () => expect(ambiguous.length).toBeGreaterThan(8));

  it.each(ambiguous)('with a rule for /files/*, %s: %s', (cell = '', cause = '') => {
    const [path = ''] = codesIn(cell);
    const policy = compiled({ rules: [{ match_hosts: ['a.test'], match_paths: ['/files/*'], headers }] });
    const decision = policy.decide(authorityOf('a.test'), path);
    if (cause === '') expect(decision.kind).toBe('intercept');
    else expect(decision).toEqual({ kind: 'refuse', reason: 'ambiguous_path', detail: cause });
  });
});

describe('the table of destinations', () => {
  const cases = casesOf('Destinations', '| entry | contains | does not contain |');

  it('has rows', () => expect(cases.length).toBeGreaterThan(10));

  it.each(cases)('%s and %s: %s', (entry, host, contains) => {
    const authority = authorityOf(host);
    const bypass = compiled({ no_proxy: [entry] }).coverOf(authority);
    expect(bypass).toMatchObject({ reason: contains ? 'no_proxy' : 'no_match' });
    const denied = compiled({ access_control: { deny_list: [entry] } }).coverOf(authority);
    expect(denied).toMatchObject({ reason: contains ? 'access_denied' : 'no_match' });
  });
});
