// Writes an authored proxy_config as the document that its author would write: what has its default value is omitted.
// How an opaque value is shown is the caller's choice; this file never opens one.
import type { Secret } from '../../base/secret.ts';
import type { CallbackEntry, HeaderEntry, ProxyConfig, RuleEntry, Scrub } from './proxy-config-schema.ts';

/** The keys that represent an opaque value, beside `name` and `type`. */
export type ShowOpaque = (value: Secret) => Record<string, unknown>;

/** A value fit for JSON. parseProxyConfig parses it to an equal config. */
export function toProxyConfigDocument(config: ProxyConfig, showOpaque: ShowOpaque): unknown {
  return withoutUndefined({
    rules: unlessEmpty(config.rules.map((rule) => toRule(rule, showOpaque))),
    callbacks: unlessEmpty(config.callbacks.map((callback) => toCallback(callback, showOpaque))),
    no_proxy: unlessEmpty(config.no_proxy),
    access_control: config.access_control && withoutUndefined(config.access_control),
  });
}

function toRule(rule: RuleEntry, showOpaque: ShowOpaque): object {
  return withoutUndefined({
    ...toLabels(rule),
    env_vars: unlessEmpty(rule.env_vars),
    match_hosts: rule.match_hosts,
    match_paths: unlessEmpty(rule.match_paths),
    headers: rule.headers.map((header) => toHeader(header, showOpaque)),
    no_proxy: unlessEmpty(rule.no_proxy),
    scrub: unlessHead(rule.scrub),
    refuse: rule.refuse,
  });
}

function toCallback(callback: CallbackEntry, showOpaque: ShowOpaque): object {
  return withoutUndefined({
    ...toLabels(callback),
    match_hosts: callback.match_hosts,
    url: callback.url,
    request_headers: unlessEmpty(callback.request_headers.map((header) => toHeader(header, showOpaque))),
    ttl_seconds: callback.ttl_seconds,
    scrub: unlessHead(callback.scrub),
  });
}

function toLabels({ name, description, enabled }: RuleEntry | CallbackEntry): object {
  return { name, description, enabled: enabled ? undefined : false };
}

function toHeader({ name, type, value }: HeaderEntry, showOpaque: ShowOpaque): object {
  return { name, type, ...(type === 'opaque' ? showOpaque(value) : { value }) };
}

function unlessEmpty<T extends object>(value: T): T | undefined {
  return Object.keys(value).length === 0 ? undefined : value;
}

function unlessHead(scrub: Scrub): Scrub | undefined {
  return scrub === 'head' ? undefined : scrub;
}

function withoutUndefined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
