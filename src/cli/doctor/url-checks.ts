// What `sallyport doctor URL` checks: the name, the rules, and one HEAD request through the proxy, which runs the callback
// and reaches the host as any other request would.
import { lookup } from 'node:dns/promises';
import { toLocKey } from '../../base/schema.ts';
import type { ListenAddress } from '../../base/listen-address.ts';
import { explainRefusal } from '../../proxy/refusal.ts';
import { isLocalhostName } from '../../base/address-guard.ts';
import { readProxyToken } from '../../sidecar/access-tokens.ts';
import type { Config } from '../../sidecar/config.ts';
import { codeOf } from '../../tls/pem-files.ts';
import { systemRoots } from '../../tls/system-roots.ts';
import type { ReadAuthority } from '../ca/certificate-file.ts';
import { entriesHiding } from '../client/no-proxy.ts';
import { explainFor } from '../explain.ts';
import type { AskedRequest, Explanation } from '../../sidecar/explanation.ts';
import { type Finding, failed, ok, skipped } from './finding.ts';
import { headThroughTunnel, type Reply } from './proxied-request.ts';

/** `authority` undefined: the CA of the proxy cannot be read. */
type Through = { readonly proxy: ListenAddress; readonly authority: ReadAuthority | undefined };

export async function checkUrl(
  config: Config,
  asked: AskedRequest,
  { proxy, authority }: Through,
): Promise<readonly Finding[]> {
  const explained = await explainFor(config, asked).catch((error: unknown) =>
    error instanceof Error ? error.message : 'unknown error',
  );
  const findings = [
    await nameFinding(asked, explained),
    bypassFinding(asked, process.env),
    rulesFinding(config, explained),
  ];
  if (asked.scheme === 'http') return [...findings, skipped('request', 'only https:// URLs are requested')];
  if (authority === undefined) return [...findings, skipped('request', 'the CA is not known')];
  const usesCallback = typeof explained !== 'string' && explained.outcome === 'callback';
  const login = proxyLogin(config);
  if (typeof login === 'object') return [...findings, login];
  const reply = await requestThrough(asked, { proxy, login }, authority);
  return [...findings, ...requestFindings(reply, usesCallback, Date.now())];
}

async function nameFinding(
  { authority: { host, kind } }: AskedRequest,
  explained: Explanation | string,
): Promise<Finding> {
  if (typeof explained !== 'string' && explained.outcome === 'local')
    return skipped('DNS', `${host} is never looked up`);
  if (kind !== 'name') return skipped('DNS', `${host} is an address`);
  if (isLocalhostName(host)) return skipped('DNS', `${host} is loopback without a lookup`);
  try {
    const found = await lookup(host, { all: true });
    return ok('DNS', `${host} has ${found.length} ${found.length === 1 ? 'address' : 'addresses'} here`);
  } catch (error) {
    const cure =
      'check the name and the DNS server; the proxy resolves names itself, maybe on another machine';
    return failed('DNS', `${host} cannot be resolved here (${String(codeOf(error))})`, cure);
  }
}

/** Clients of this shell send no request to the proxy for a host that one of these variables names. */
export function bypassFinding({ authority }: AskedRequest, env: NodeJS.ProcessEnv): Finding {
  const [entry] = entriesHiding(authority.text, [env['NO_PROXY'], env['no_proxy']]);
  if (entry === undefined) return ok('NO_PROXY', `no entry matches ${authority.host}`);
  const text = `the entry ${toLocKey(entry)} matches ${authority.host}, so clients of this shell go past the proxy`;
  return failed('NO_PROXY', text, 'remove the entry from NO_PROXY and no_proxy');
}

/** `explained` as a string: why there is no explanation. A client may not be allowed to ask the admin API. */
function rulesFinding({ proxyConfigFile: file }: Config, explained: Explanation | string): Finding {
  if (typeof explained === 'string')
    return file === undefined ? skipped('rules', explained) : failed('rules', explained, `correct ${file}`);
  const { outcome, reason, refusal } = explained;
  if (outcome !== 'refused') return ok('rules', `${outcome}: ${reason}`);
  return failed('rules', reason, refusal?.hint ?? 'change the rules or the settings that the reason names');
}

/** The credentials of `Proxy-Authorization`; undefined: none are needed. A finding if the token cannot be read. */
function proxyLogin(config: Config): string | undefined | Finding {
  try {
    const token = readProxyToken(config);
    return token === undefined ? undefined : Buffer.from(`sallyport:${token}`).toString('base64');
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown error';
    const cure = 'set auth.token_file (SALLYPORT_AUTH_TOKEN_FILE) to a file with the token that you can read';
    return failed('request', `the proxy requires a token, and ${reason}`, cure);
  }
}

function requestThrough(
  { authority, target }: AskedRequest,
  { proxy, login }: { readonly proxy: ListenAddress; readonly login: string | undefined },
  ca: ReadAuthority,
): Promise<Reply> {
  const to = { authority: authority.text, host: authority.host, isName: authority.kind === 'name', target };
  return headThroughTunnel(proxy, login, to, [ca.pem, ...systemRoots()]);
}

/** Findings about the callback, if the request has one, about the way to the host, and about the request itself. */
export function requestFindings(reply: Reply, usesCallback: boolean, nowMs: number): readonly Finding[] {
  if ('failure' in reply) return [requestFailure(reply.failure)];
  const { error, status, date } = reply;
  const callback =
    usesCallback && error !== 'callback_failed' ? [ok('callback', 'its endpoint returned headers')] : [];
  if (error !== undefined) return [...(EGRESS.test(error) ? callback : []), refusalFinding(error)];
  return [
    ...callback,
    ok('egress', 'the proxy reached the host'),
    ok('request', `HEAD through the proxy: ${status}`),
    ...differenceOfClocks(date, nowMs),
  ];
}

function requestFailure(code: string): Finding {
  const isUntrusted = /CERT|SIGNATURE|ISSUER/.test(code);
  const cure = isUntrusted
    ? 'the running proxy has another CA than this one: set --state-dir to that of the proxy'
    : 'read the log of the proxy';
  return failed('request', `HEAD through the proxy failed (${code})`, cure);
}

/** The codes of refusals that are about the host, not about the rules or the client. */
const EGRESS = /^(?:dns_|upstream_|address_|port_denied|alpn_)/;

function refusalFinding(code: string): Finding {
  const check = code === 'callback_failed' ? 'callback' : EGRESS.test(code) ? 'egress' : 'request';
  const refusal = explainRefusal(code);
  const text = `the proxy refused it with ${code}${refusal === undefined ? '' : `: ${refusal.message}`}`;
  if (check !== 'callback') return failed(check, text, refusal?.hint ?? 'read the log of the proxy');
  const cure =
    'the cause in the record of the request says why; docs/callbacks.md has what the endpoint must return';
  return failed(check, text, cure);
}

const MAX_DIFFERENCE_MS = 300_000;

/** The host's own clock is a second opinion: a certificate is judged by the clock of this machine. */
function differenceOfClocks(date: string | undefined, nowMs: number): readonly Finding[] {
  const difference = date === undefined ? 0 : Math.abs(nowMs - Date.parse(date));
  if (!(difference > MAX_DIFFERENCE_MS)) return [];
  const minutes = Math.round(difference / 60_000);
  return [
    failed(
      'clock',
      `it differs from that of the host by ${minutes} minutes`,
      'set the clock of this machine, for example by NTP',
    ),
  ];
}
