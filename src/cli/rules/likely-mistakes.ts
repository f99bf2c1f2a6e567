// Finds what is valid in a proxy_config and probably not meant. Only `check` shows these: each of them can be intended, so
// neither a start nor the admin API warns of it.
import { formatAddress } from '../../base/listen-address.ts';
import { type Issue, toLocKey } from '../../base/schema.ts';
import { parseCidr } from '../../base/address.ts';
import { parseAuthority } from '../../policy/authority/authority.ts';
import type { CallbackEntry, ProxyConfig, RuleEntry } from '../../policy/document/proxy-config-schema.ts';
import { type HostPattern, parseHostPattern } from '../../policy/match/host-pattern.ts';
import { type EgressRules, refuseAddress } from '../../proxy/upstream/address-guard.ts';

export type Mistake = Pick<Issue, 'loc' | 'msg'>;

/** `config` was parsed without an issue. Disabled entries are left out. */
export function findLikelyMistakes(config: ProxyConfig): readonly Mistake[] {
  const hosts = hostsOf(config);
  return [
    ...valueMistakes(config),
    ...unreachableHosts(hosts),
    ...unreachableEndpoints(config),
    ...repeatedHosts(hosts),
    ...missingApexes(hosts),
  ];
}

function valueMistakes({ rules, callbacks }: ProxyConfig): Mistake[] {
  return [
    ...rules.flatMap((rule, i) => (rule.enabled ? inHeaders(rule.headers, ['rules', i, 'headers']) : [])),
    ...callbacks.flatMap((callback, i) =>
      callback.enabled ? inHeaders(callback.request_headers, ['callbacks', i, 'request_headers']) : [],
    ),
  ];
}

type Header = RuleEntry['headers'][number] | CallbackEntry['request_headers'][number];

function inHeaders(headers: readonly Header[], list: Issue['loc']): Mistake[] {
  return headers.flatMap(({ type, value }, i) => {
    // What an opaque value holds is not read.
    const msg = type === 'opaque' ? undefined : valueMistake(type, value, list[0] === 'callbacks');
    return msg === undefined ? [] : { loc: [...list, i, 'value'], msg };
  });
}

function valueMistake(type: 'workspace_secret' | 'plaintext', value: string, isCallback: boolean) {
  const [, dollar = '', name = ''] = /(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}/.exec(value) ?? [];
  if (name === '') return undefined;
  const shown = toLocKey(name);
  if (type === 'workspace_secret')
    return dollarNames(value)
      ? `A dollar sign is sent before the secret: write {${shown}}, not \${${shown}}`
      : undefined;
  if (isCallback)
    return `plaintext is sent as it is written, braces included: {${shown}} is not replaced. Use type opaque for a secret`;
  return `plaintext is sent as it is written, braces included: use type workspace_secret if ${dollar}{${shown}} names a secret`;
}

function dollarNames(value: string): boolean {
  return /\$\{[A-Za-z_][A-Za-z0-9_]*\}/.test(value);
}

type Host = { readonly pattern: HostPattern; readonly entry: string; readonly loc: Issue['loc'] };

function hostsOf(config: ProxyConfig): readonly Host[] {
  return (['rules', 'callbacks'] as const).flatMap((list) =>
    config[list].flatMap((entry, index) =>
      !entry.enabled
        ? []
        : entry.match_hosts.flatMap((text, i): Host[] => {
            const pattern = parseHostPattern(text);
            if (typeof pattern === 'string') return [];
            return [{ pattern, entry: `${list}.${index}`, loc: [list, index, 'match_hosts', i] }];
          }),
    ),
  );
}

function unreachableHosts(hosts: readonly Host[]): Mistake[] {
  return hosts.flatMap(({ pattern, loc }) => {
    const cause = pattern.kind === 'name' ? undefined : refusedAlways(pattern);
    if (cause === undefined) return [];
    const msg = `The proxy never connects to ${pattern.host} (${cause}), whatever is set: remove it`;
    return { loc, msg };
  });
}

function unreachableEndpoints({ callbacks }: ProxyConfig): Mistake[] {
  return callbacks.flatMap(({ enabled, url }, index) => {
    const pattern = enabled ? parseHostPattern(new URL(url).host) : '';
    if (typeof pattern === 'string' || pattern.kind === 'name') return [];
    const cause = refusedAlways(pattern);
    if (cause === undefined) return [];
    const msg = `The proxy never connects to ${pattern.host} (${cause}), whatever is set: every callback fails`;
    return { loc: ['callbacks', index, 'url'], msg };
  });
}

/** Why the address is refused where the operator allows all that a setting can allow. */
function refusedAlways({ host, port = 443 }: HostPattern): string | undefined {
  const authority = parseAuthority(formatAddress({ host, port }));
  const own = parseCidr(host);
  if (typeof authority === 'string' || own === undefined) return undefined;
  const egress = { ...OPEN, allowCidrs: [own] };
  return refuseAddress(host, { authority, isProvenRuleHost: true, denies: () => false }, egress)?.cause;
}

const OPEN: EgressRules = {
  allowAllPrivate: true,
  allowLoopback: true,
  allowCidrs: [],
  privateByRule: 'tls',
  ports: new Set(),
  injectCleartext: [],
  isOwnListener: () => false,
};

function repeatedHosts(hosts: readonly Host[]): Mistake[] {
  const known = new Set<string>();
  return hosts.flatMap(({ pattern, entry, loc }) => {
    const key = `${entry} ${pattern.text}`;
    if (!known.has(key)) {
      known.add(key);
      return [];
    }
    return { loc, msg: `${pattern.text} is in this list already: remove one of the two` };
  });
}

/** `*.example.com` does not match `example.com`, which its author often expects. */
function missingApexes(hosts: readonly Host[]): Mistake[] {
  const exact = new Set(hosts.flatMap(({ pattern }) => (pattern.isWildcard ? [] : pattern.host)));
  const wildcards = new Set(hosts.flatMap(({ pattern }) => (pattern.isWildcard ? pattern.host : [])));
  const reported = new Set<string>();
  return hosts.flatMap(({ pattern, loc }) => {
    const { host: apex, isWildcard } = pattern;
    if (!isWildcard || exact.has(apex) || reported.has(apex) || isUnderOne(apex, wildcards)) return [];
    reported.add(apex);
    return { loc, msg: `*.${apex} does not match ${apex} itself: add ${apex} if it is meant too` };
  });
}

function isUnderOne(name: string, wildcards: ReadonlySet<string>): boolean {
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1))
    if (wildcards.has(name.slice(dot + 1))) return true;
  return false;
}
