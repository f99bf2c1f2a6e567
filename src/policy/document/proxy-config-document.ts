// Writes an authored proxy_config as the document that its author would write: what stands at its default is left out.
// How an opaque value shows is the caller's choice; this file never opens one.
import type { Secret } from '../../base/secret.ts';
import type { CallbackEntry, HeaderEntry, ProxyConfig, RuleEntry, Scrub } from './proxy-config-schema.ts';

/** The keys that stand for an opaque value, beside `name` and `type`. */
export type ShowOpaque = (value: Secret) => Record<string, unknown>;

/** A value fit for JSON. parseProxyConfig reads it back to an equal config. */
export function toProxyConfigDocument(config: ProxyConfig, showOpaque: ShowOpaque): unknown {
  const { rules, callbacks, no_proxy: noProxy, access_control: access } = config;
  return {
    ...unlessEmpty(
      'rules',
      rules.map((rule) => toRule(rule, showOpaque)),
    ),
    ...unlessEmpty(
      'callbacks',
      callbacks.map((callback) => toCallback(callback, showOpaque)),
    ),
    ...unlessEmpty('no_proxy', noProxy),
    ...(access === undefined ? {} : { access_control: given(access) }),
  };
}

function toRule(rule: RuleEntry, showOpaque: ShowOpaque): unknown {
  const { name, description, enabled, env_vars: envVars } = rule;
  return {
    ...given({ name, description }),
    ...(enabled ? {} : { enabled }),
    ...(Object.keys(envVars).length === 0 ? {} : { env_vars: envVars }),
    match_hosts: rule.match_hosts,
    ...unlessEmpty('match_paths', rule.match_paths),
    headers: rule.headers.map((header) => toHeader(header, showOpaque)),
    ...unlessEmpty('no_proxy', rule.no_proxy),
    ...unlessHead(rule.scrub),
  };
}

function toCallback(callback: CallbackEntry, showOpaque: ShowOpaque): unknown {
  const { name, description, enabled } = callback;
  return {
    ...given({ name, description }),
    ...(enabled ? {} : { enabled }),
    match_hosts: callback.match_hosts,
    url: callback.url,
    ...unlessEmpty(
      'request_headers',
      callback.request_headers.map((header) => toHeader(header, showOpaque)),
    ),
    ttl_seconds: callback.ttl_seconds,
    ...unlessHead(callback.scrub),
  };
}

function toHeader({ name, type, value }: HeaderEntry, showOpaque: ShowOpaque): unknown {
  return { name, type, ...(type === 'opaque' ? showOpaque(value) : { value }) };
}

function unlessEmpty(key: string, list: readonly unknown[]): Record<string, unknown> {
  return list.length === 0 ? {} : { [key]: list };
}

function unlessHead(scrub: Scrub): Record<string, unknown> {
  return scrub === 'head' ? {} : { scrub };
}

/** Without the keys that are undefined. */
function given(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
