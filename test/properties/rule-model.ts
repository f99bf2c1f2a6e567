// A second implementation of the matching rules, from the design alone: slow, plain, and without a line of
// src/policy. It knows the authored document and canonical hosts; it parses nothing that a client sends.
export type ModelHost = {
  /** Canonical: lower case, no trailing dot; an IPv6 address in its short form without brackets. */
  readonly host: string;
  readonly kind: 'name' | 'ipv4' | 'ipv6';
};
export type ModelAuthority = ModelHost & { readonly port: number };

export type ModelHeader = {
  readonly name: string;
  readonly type: 'plaintext' | 'opaque' | 'workspace_secret';
  readonly value: string;
};
export type ModelRule = {
  readonly name: string;
  readonly enabled: boolean;
  readonly match_hosts: readonly string[];
  readonly match_paths: readonly string[];
  readonly headers: readonly ModelHeader[];
  readonly no_proxy: readonly string[];
};
export type ModelCallback = {
  readonly name: string;
  readonly enabled: boolean;
  readonly match_hosts: readonly string[];
  readonly url: string;
  readonly ttl_seconds: number;
};
export type ModelConfig = {
  readonly rules: readonly ModelRule[];
  readonly callbacks: readonly ModelCallback[];
  readonly no_proxy: readonly string[];
  readonly access_control?: {
    readonly allow_list?: readonly string[];
    readonly deny_list?: readonly string[];
  };
};

export type ModelCover = 'access_denied' | 'no_proxy' | 'rule' | 'callback' | 'no_match';

export type ModelVerdict =
  | { readonly reported: 'access_denied' | 'no_proxy' | 'no_match' | 'no_path_match' | 'ambiguous_path' }
  | { readonly reported: 'rule'; readonly rule: ModelRule }
  | { readonly reported: 'callback'; readonly callback: ModelCallback };

/** What is decided of a destination before any path is known. */
export function coverByModel(config: ModelConfig, to: ModelAuthority): ModelCover {
  const { allow_list: allowed, deny_list: denied } = config.access_control ?? {};
  if (allowed && !allowed.some((entry) => entryHolds(entry, to))) return 'access_denied';
  if (denied?.some((entry) => entryHolds(entry, to))) return 'access_denied';
  const rules = config.rules.filter(({ enabled }) => enabled);
  const outside = [...config.no_proxy, ...rules.flatMap((rule) => rule.no_proxy)];
  if (outside.some((entry) => entryHolds(entry, to))) return 'no_proxy';
  if (rules.some((rule) => namesHost(rule, to))) return 'rule';
  return config.callbacks.some((one) => one.enabled && namesHost(one, to)) ? 'callback' : 'no_match';
}

/** What is decided of one request; `target` is origin-form or `*`. */
export function decideByModel(config: ModelConfig, to: ModelAuthority, target: string): ModelVerdict {
  const cover = coverByModel(config, to);
  if (cover === 'rule') return ruleFor(config, to, target);
  if (cover !== 'callback') return { reported: cover };
  const callback = config.callbacks.find((one) => one.enabled && namesHost(one, to));
  if (!callback || target === '*') return { reported: 'no_path_match' };
  return { reported: 'callback', callback };
}

/** The allow_list names this host and this very port. */
export function isPortListedByModel(config: ModelConfig, to: ModelAuthority): boolean {
  const allowed = config.access_control?.allow_list ?? [];
  return allowed.some((entry) => split(entry).port === to.port && entryHolds(entry, to));
}

/** Some rule of the host, or the callback that governs it, names it exactly. */
export function isExactByModel(config: ModelConfig, to: ModelAuthority): boolean {
  const governing = (one: ModelRule | ModelCallback): boolean => one.enabled && namesHost(one, to);
  const rules = config.rules.filter(governing);
  const named = rules.length > 0 ? rules : config.callbacks.filter(governing).slice(0, 1);
  return named.some((one) => one.match_hosts.some((text) => !text.startsWith('*.') && hostHolds(text, to)));
}

export function namesHost({ match_hosts: hosts }: ModelRule | ModelCallback, to: ModelAuthority): boolean {
  return hosts.some((text) => hostHolds(text, to));
}

function ruleFor(config: ModelConfig, to: ModelAuthority, target: string): ModelVerdict {
  const rules = config.rules.filter((rule) => rule.enabled && namesHost(rule, to));
  if (target === '*') return { reported: 'no_path_match' };
  const sent = target.replace(/\?.*$/s, '');
  const first = (path: string, spell: (pattern: string) => string): ModelRule | undefined =>
    rules.find(({ match_paths: paths }) => paths.length === 0 || paths.some((p) => glob(spell(p), path)));
  if (rules.some(({ match_paths: paths }) => paths.length > 0)) {
    const decoded = decodeFully(sent);
    if (decoded === undefined) return { reported: 'ambiguous_path' };
    const asSent = first(sent, (pattern) => pattern);
    // Hosts differ in what they cut from a decoded path: one that cuts nothing must find the same rule. All merge slashes.
    const whole = first(merged(decoded), (pattern) => decodeFully(pattern) ?? pattern);
    const shortest = first(cut(decoded), (pattern) => decodeFully(pattern) ?? pattern);
    if (whole !== asSent || shortest !== asSent) return { reported: 'ambiguous_path' };
    return asSent ? { reported: 'rule', rule: asSent } : { reported: 'no_path_match' };
  }
  const [rule] = rules;
  return rule ? { reported: 'rule', rule } : { reported: 'no_path_match' };
}

/** The fixpoint of percent-decoding, one character a byte; undefined where no reading of the path is the only one. */
function decodeFully(path: string): string | undefined {
  const decoded = decodeWhole(path);
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined;
  if (/[\0-\x1f\x7f]/.test(decoded)) return undefined;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(decoded, 'latin1'));
  } catch {
    return undefined;
  }
  // What ends a parameter must not depend on how far it was decoded when it was cut.
  if (path.split('/').some((segment) => /;.*[/\\?#]/s.test(decodeWhole(segment)))) return undefined;
  const segments = decoded.split(/[/\\]/).map((segment) => segment.replace(/[;?#].*$/s, ''));
  return segments.some((segment) => segment === '.' || segment === '..') ? undefined : decoded;
}

function decodeWhole(text: string): string {
  let decoded = text;
  for (;;) {
    const next = decoded.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    if (next === decoded) return decoded;
    decoded = next;
  }
}

function merged(decoded: string): string {
  return decoded.replaceAll('\\', '/').replace(/\/+/g, '/');
}

function cut(decoded: string): string {
  return decoded
    .replaceAll('\\', '/')
    .replace(/[?#].*$/s, '')
    .replace(/;[^/]*/g, '')
    .replace(/\/+/g, '/');
}

/** By a regular expression: the last star crosses segments, the others do not. */
function glob(pattern: string, path: string): boolean {
  const [head = '', ...rest] = pattern
    .replace(/\/\*\*$/, '/*')
    .split('*')
    .map((text) => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  const stars = rest.map((text, i) => (i === rest.length - 1 && text === '' ? '[^]*' : `[^/]*${text}`));
  return new RegExp(`^${head}${stars.join('')}$`).test(path);
}

function hostHolds(text: string, to: ModelAuthority): boolean {
  const { host, port } = split(text);
  if (port !== undefined && port !== to.port) return false;
  return host.startsWith('*.') ? isBelow(host.slice(1), to) : host === to.host;
}

function entryHolds(text: string, to: ModelAuthority): boolean {
  if (/\/\d+$/.test(text)) return rangeHolds(text, to);
  return text.startsWith('.') ? hostHolds(`*${text}`, to) : hostHolds(text, to);
}

function isBelow(suffix: string, { host, kind }: ModelAuthority): boolean {
  return kind === 'name' && host.endsWith(suffix) && host.length > suffix.length;
}

/** `/8` and `/16` of IPv4 only, and of IPv6 whole groups: all that the documents hold. */
function rangeHolds(text: string, { host, kind }: ModelAuthority): boolean {
  const [base = '', bits = ''] = text.split('/');
  const isV6 = base.includes(':');
  if (kind !== (isV6 ? 'ipv6' : 'ipv4')) return false;
  const [separator, groupBits] = isV6 ? [':', 16] : ['.', 8];
  const groups = Number(bits) / groupBits;
  const head = (address: string): string => address.split(separator).slice(0, groups).join(separator);
  return head(host) === head(base);
}

function split(text: string): { readonly host: string; readonly port: number | undefined } {
  const [, v6, name = '', port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? [];
  // An entry of a list may be an IPv6 address without brackets.
  if (v6 === undefined && name === '') return { host: text, port: undefined };
  return { host: v6 ?? name, port: port === undefined ? undefined : Number(port) };
}
