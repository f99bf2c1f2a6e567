// Fuzz target: the rule that wins is the one of a second, simple implementation, which checks all of them.
// Input: a rule a line, hosts and paths with spaces between; then `?` lines, each an authority and a target.
import assert from 'node:assert/strict';
import { type Authority, parseAuthority } from '../../../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../../../src/policy/compile.ts';
import type { Decision } from '../../../src/policy/policy.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import { type Spelling, matches, partialReadings, readings } from '../simple-path.ts';

type Rule = { readonly hosts: readonly string[]; readonly paths: readonly string[] };

const HEADERS = [{ name: 'authorization', type: 'plaintext', value: 'Bearer x' }];

export function fuzz(data: Buffer): void {
  const lines = data.toString('latin1').split('\n');
  const rules = lines.filter((line) => !line.startsWith('?')).map(toRule);
  const parsed = parseProxyConfig({
    rules: rules.map(({ hosts, paths }) => ({ match_hosts: hosts, match_paths: paths, headers: HEADERS })),
  });
  if (!parsed.ok) return;
  const compiled = compileProxyConfig(parsed.value, () => undefined, 1);
  assert(compiled.ok);
  for (const line of lines.filter((text) => text.startsWith('?'))) {
    const [host = '', target = '/'] = line.slice(1).split(' ');
    const authority = parseAuthority(host, 443);
    if (typeof authority === 'string') continue;
    const decision = compiled.value.decide(authority, target);
    assert.equal(nameOf(decision), expected(rules, authority, target));
    assert.equal(
      compiled.value.coverOf(authority).kind,
      isCovered(rules, authority) ? 'intercept' : 'tunnel',
    );
  }
}

function toRule(line: string): Rule {
  const words = line.split(' ').filter((word) => word !== '');
  return {
    hosts: words.filter((word) => !word.startsWith('/')),
    paths: words.filter((word) => word.startsWith('/')),
  };
}

function nameOf(decision: Decision): string {
  if (decision.kind !== 'intercept') return decision.reason;
  return decision.apply === 'rule' ? decision.rule.name : decision.apply;
}

function expected(rules: readonly Rule[], authority: Authority, target: string): string {
  const own = rules
    .map((rule, index) => ({ rule, name: `rules[${index}]` }))
    .filter(({ rule }) => rule.hosts.some((host) => meets(host, authority)));
  if (own.length === 0) return 'no_match';
  if (target === '*') return 'none';
  if (own.every(({ rule }) => rule.paths.length === 0)) return own[0]?.name ?? 'none';
  const [sent = ''] = target.split('?');
  const read = readings(sent);
  if (read === undefined) return 'ambiguous_path';
  const winner = (path: string, spelling: Spelling): string =>
    own.find(({ rule }) => rule.paths.length === 0 || rule.paths.some((one) => matches(one, path, spelling)))
      ?.name ?? 'none';
  const winners = [winner(sent, 'as written'), winner(read.decoded, 'decoded'), winner(read.cut, 'decoded')];
  if (read.folded !== read.decoded)
    winners.push(winner(read.folded, 'folded'), winner(read.foldedCut, 'folded'));
  const isPlain = !rules.some((rule) => rule.paths.some((one) => one.includes('%')));
  const parts = isPlain ? partialReadings(sent) : [sent.replace(/\/{2,}/g, '/')];
  winners.push(...parts.map((part) => winner(part, 'as written')));
  return new Set(winners).size === 1 ? winner(sent, 'as written') : 'ambiguous_path';
}

function isCovered(rules: readonly Rule[], authority: Authority): boolean {
  return rules.some(({ hosts }) => hosts.some((host) => meets(host, authority)));
}

function meets(pattern: string, { host, kind, port }: Authority): boolean {
  const isWildcard = pattern.startsWith('*.');
  const rest = isWildcard ? pattern.slice(2) : pattern;
  const own = parseAuthority(rest) === 'port_missing' ? parseAuthority(`${rest}:1`) : parseAuthority(rest);
  if (typeof own === 'string') return false;
  const hasPort = parseAuthority(rest) !== 'port_missing';
  if (hasPort && own.port !== port) return false;
  return isWildcard
    ? kind === 'name' && host.endsWith(`.${own.host}`)
    : own.host === host && own.kind === kind;
}
