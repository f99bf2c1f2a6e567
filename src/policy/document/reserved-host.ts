// Finds the entries of a proxy_config that name the reserved host, which the proxy serves itself: no rule can apply to it.
import type { Issue, Loc } from '../../base/schema.ts';
import { parseDestination } from '../match/destination-list.ts';
import { parseHostPattern } from '../match/host-pattern.ts';
import type { ProxyConfig } from './proxy-config-schema.ts';

export const DEFAULT_RESERVED_HOST = 'sallyport.internal';

/** A wildcard that covers the name beside others is allowed: the reserved host is decided before it. */
export function reservedHostIssues(config: ProxyConfig, reserved: string): readonly Issue[] {
  const msg = `${reserved} is reserved for the proxy itself and cannot have rules; remove it, or have the operator change reserved_host`;
  return namedHosts(config).flatMap(({ host, loc }): Issue[] =>
    host === reserved ? [{ loc, msg, type: 'value_error' }] : [],
  );
}

type NamedHost = { readonly host: string | undefined; readonly loc: Loc };

function namedHosts(config: ProxyConfig): readonly NamedHost[] {
  const { rules, callbacks, no_proxy: noProxy, access_control: access } = config;
  const patterns = (texts: readonly string[], loc: Loc): readonly NamedHost[] =>
    texts.map((text, i) => ({ host: hostOfPattern(text), loc: [...loc, i] }));
  const destinations = (texts: readonly string[] | undefined, loc: Loc): readonly NamedHost[] =>
    (texts ?? []).map((text, i) => ({ host: hostOfDestination(text), loc: [...loc, i] }));
  return [
    ...rules.flatMap((rule, i) => [
      ...patterns(rule.match_hosts, ['rules', i, 'match_hosts']),
      ...destinations(rule.no_proxy, ['rules', i, 'no_proxy']),
    ]),
    ...callbacks.flatMap((callback, i) => [
      ...patterns(callback.match_hosts, ['callbacks', i, 'match_hosts']),
      { host: hostOfUrl(callback.url), loc: ['callbacks', i, 'url'] },
    ]),
    ...destinations(noProxy, ['no_proxy']),
    ...destinations(access?.allow_list, ['access_control', 'allow_list']),
    ...destinations(access?.deny_list, ['access_control', 'deny_list']),
  ];
}

function hostOfPattern(text: string): string | undefined {
  const pattern = parseHostPattern(text);
  return typeof pattern === 'string' || pattern.isWildcard ? undefined : pattern.host;
}

function hostOfDestination(text: string): string | undefined {
  const destination = parseDestination(text);
  if (typeof destination === 'string' || destination.kind !== 'names') return undefined;
  return destination.pattern.isWildcard ? undefined : destination.pattern.host;
}

function hostOfUrl(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, '') : undefined;
}
