// What becomes of one request, from the design alone: the second implementation of the plan, the gate and the head that
// leaves. It works on the parts that a request was written from, so that it needs no parser.
import {
  type ModelAuthority,
  type ModelConfig,
  type ModelHeader,
  coverByModel,
  decideByModel,
  isExactByModel,
  isPortListedByModel,
} from './rule-model.ts';

export type ModelField = { readonly name: string; readonly value: string };

export type ModelRequest = {
  /** `tls` and `clear` come through a CONNECT, `plain` by the proxy port. */
  readonly entry: 'tls' | 'clear' | 'plain';
  readonly to: ModelAuthority;
  /** `to`, as the client spells it; with its port. */
  readonly spelled: string;
  readonly method: string;
  readonly minor: 0 | 1;
  /** Origin-form, `*`, or empty: absolute-form without a path. */
  readonly path: string;
  /** What precedes the path: nothing, `http://`, `https://`. */
  readonly absolute: '' | 'http://' | 'https://';
  /** The authority that an absolute-form names, and what it means. */
  readonly named: { readonly text: string; readonly to: ModelAuthority };
  /** Host fields: as written, and what each means without regard to a default port; undefined: not an authority. */
  readonly hosts: readonly { readonly text: string; readonly to: ModelHostPort | undefined }[];
  readonly fields: readonly ModelField[];
};
export type ModelHostPort = Omit<ModelAuthority, 'port'> & { readonly port: number | undefined };

export type Outcome = {
  /** The outcome's name, as the table of coverage counts it. */
  readonly reported: string;
  /** The head that leaves; undefined: nothing does. */
  readonly sent?: string;
  readonly rule?: string;
};

/** What a callback of this name returns; undefined: it fails. */
export type CallbackResponses = (name: string) => readonly ModelHeader[] | undefined;
export type ModelWorld = {
  readonly config: ModelConfig;
  readonly allowLoopback: boolean;
  /** `host:port` in canonical spelling. */
  readonly clearListed: readonly string[];
  readonly secret: (name: string) => string;
  readonly responses: CallbackResponses;
};

const hopByHop = ['connection', 'keep-alive', 'te', 'trailer', 'upgrade', 'http2-settings'];
const framing = ['host', 'content-length', 'transfer-encoding', 'expect'];
const urlOverrides = ['x-original-url', 'x-rewrite-url', 'x-forwarded-uri'];

export function outcomeByModel(world: ModelWorld, request: ModelRequest): Outcome {
  const { config } = world;
  const { entry, to } = request;
  if (entry !== 'plain') {
    const cover = coverByModel(config, to);
    if (cover === 'access_denied') return { reported: 'connect access_denied' };
    if (cover === 'no_proxy' || cover === 'no_match') {
      const listed = isPortListedByModel(config, to) ? ' at a listed port' : '';
      return { reported: `connect ${cover}${listed}` };
    }
    const exact = isExactByModel(config, to) ? 'exact' : 'wildcard';
    return prefixed(`${cover} ${exact}`, outcomeOfRequest(world, request));
  }
  return prefixed('plain', outcomeOfRequest(world, request));
}

export function prefixed(prefix: string, outcome: Outcome): Outcome {
  return { ...outcome, reported: `${prefix}: ${outcome.reported}` };
}

function outcomeOfRequest(world: ModelWorld, request: ModelRequest): Outcome {
  const refused = errorOf(request);
  if (refused) return { reported: refused };
  const { path, method, entry, to } = request;
  const target =
    path === '' || path.startsWith('?') ? (path === '' && method === 'OPTIONS' ? '*' : `/${path}`) : path;
  const verdict = decideByModel(world.config, to, target);
  switch (verdict.reported) {
    case 'access_denied':
    case 'ambiguous_path':
      return { reported: verdict.reported };
    case 'rule':
    case 'callback':
      break;
    default:
      return { reported: verdict.reported, sent: headThatLeaves(request, target, undefined) };
  }
  if (entry !== 'tls' && !mayGoInClear(world, to)) return { reported: 'cleartext_refused' };
  if (verdict.reported === 'callback') {
    const headers = world.responses(verdict.callback.name);
    if (!headers) return { reported: 'callback_failed' };
    return {
      reported: 'callback',
      rule: verdict.callback.name,
      sent: headThatLeaves(request, target, headers),
    };
  }
  const headers = verdict.rule.headers.map((header) => ({
    ...header,
    value:
      header.type === 'workspace_secret'
        ? header.value.replace(/\{(\w+)\}/g, (_, name: string) => world.secret(name))
        : header.value,
  }));
  return { reported: 'rule', rule: verdict.rule.name, sent: headThatLeaves(request, target, headers) };
}

/** The refusals that a request earns by itself, in their order. */
function errorOf(request: ModelRequest): string | undefined {
  const { method, entry, absolute, named, to, path, hosts, minor } = request;
  if (['TRACE', 'TRACK', 'CONNECT'].includes(method)) return 'method_refused';
  const scheme = entry === 'tls' ? 'https' : 'http';
  if (entry === 'plain') {
    if (absolute === '') return 'not_a_proxy_request';
    if (absolute === 'https://') return 'use_connect';
  } else if (absolute !== '') {
    if (absolute !== `${scheme}://`) return 'target_invalid';
    if (!isSame(named.to, to)) return 'authority_mismatch';
  } else if (path === '*' && method !== 'OPTIONS') return 'target_invalid';
  const [host] = hosts;
  if (!host) return minor === 1 ? 'host_invalid' : errorOfConnection(request);
  if (hosts.length > 1 || !host.to) return 'host_invalid';
  const meant = { ...host.to, port: host.to.port ?? (scheme === 'https' ? 443 : 80) };
  if (!isSame(meant, to)) return entry === 'plain' ? 'host_mismatch' : 'authority_mismatch';
  return errorOfConnection(request);
}

function errorOfConnection({ fields }: ModelRequest): string | undefined {
  return nominatedBy(fields).some((name) => framing.includes(name)) ? 'malformed_request' : undefined;
}

function headThatLeaves(
  request: ModelRequest,
  target: string,
  injected: readonly ModelHeader[] | undefined,
): string {
  const { method, minor, fields, hosts, to, entry } = request;
  const nominated = nominatedBy(fields);
  const fold = (name: string): string => name.toLowerCase().replaceAll('_', '-');
  const taken = injected && [...injected.map(({ name }) => fold(name)), ...urlOverrides];
  const kept = fields.filter(({ name }) => {
    const low = name.toLowerCase();
    if (hopByHop.includes(low) || low.startsWith('proxy-') || nominated.includes(low)) return false;
    return !taken?.includes(fold(name));
  });
  const lines = [
    ...hosts.map(({ text }) => `Host: ${text}`),
    ...kept.map(({ name, value }) => `${name}: ${value}`),
  ];
  const isUpgrade = upgrades(request, nominated);
  if (hosts.length === 0) lines.push(`Host: ${asHost(to, entry === 'tls' ? 443 : 80)}`);
  if (isUpgrade) lines.push('Connection: Upgrade', 'Upgrade: websocket');
  else if (minor === 0) lines.push('Connection: close');
  for (const { name, value } of injected ?? []) lines.push(`${name}: ${value}`);
  return [`${method} ${target} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}

function upgrades({ method, minor, fields }: ModelRequest, nominated: readonly string[]): boolean {
  const asked = fields
    .filter(({ name }) => name.toLowerCase() === 'upgrade')
    .map(({ value }) => value.toLowerCase());
  return method === 'GET' && minor === 1 && nominated.includes('upgrade') && asked.join('|') === 'websocket';
}

function nominatedBy(fields: readonly ModelField[]): readonly string[] {
  return fields
    .filter(({ name }) => name.toLowerCase() === 'connection')
    .flatMap(({ value }) => value.split(','))
    .map((option) => option.trim().toLowerCase())
    .filter((option) => option !== '');
}

function mayGoInClear({ allowLoopback, clearListed }: ModelWorld, to: ModelAuthority): boolean {
  const isLoopback =
    to.kind === 'name'
      ? /^(?:.*\.)?localhost$/.test(to.host)
      : to.kind === 'ipv4' && to.host.startsWith('127.');
  return (isLoopback && allowLoopback) || clearListed.includes(asHost(to));
}

function isSame(one: ModelAuthority, other: ModelAuthority): boolean {
  return one.host === other.host && one.port === other.port;
}

export function asHost({ host, kind, port }: ModelAuthority, defaultPort?: number): string {
  const name = kind === 'ipv6' ? `[${host}]` : host;
  return port === defaultPort ? name : `${name}:${port}`;
}
