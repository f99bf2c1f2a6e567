// Every response that the proxy sends of its own. Clients and operators program against code, status and text: a change here
// is a change of the public contract.
import { describe, expect, it } from 'vitest';
import {
  type RefusalCode,
  isRefusal,
  refusalBytes,
  refusalCatalogue,
  refuse,
} from '../../src/proxy/refusal.ts';

const catalogue: readonly (readonly [RefusalCode, number, string])[] = [
  ['malformed_request', 400, 'the request is not valid HTTP/1.1'],
  ['authority_invalid', 400, 'the host or port of the request is not valid'],
  ['host_invalid', 400, 'the request must have exactly one valid Host field'],
  ['host_mismatch', 400, 'the Host field and the request target name different hosts'],
  ['target_invalid', 400, 'the request target is not valid on this connection'],
  ['use_connect', 400, 'requests for https:// targets must use a CONNECT tunnel'],
  ['not_a_proxy_request', 400, 'this is a forward proxy, and the request is not a proxy request'],
  ['tls_at_proxy_port', 400, 'the client speaks TLS to the proxy port, which expects HTTP without TLS'],
  ['socks_at_proxy_port', 400, 'the client speaks SOCKS to the proxy port, which expects HTTP'],
  ['ambiguous_path', 400, 'the path can be read in more than one way'],
  ['access_denied', 403, 'access_control of this sandbox does not allow the host'],
  ['client_denied', 403, 'this client address may not use the proxy'],
  ['port_denied', 403, 'the port is not allowed for this host'],
  ['address_denied', 403, 'the host resolves to an address that this proxy never connects to'],
  ['address_private', 403, 'the host resolves to a private address'],
  ['cleartext_refused', 403, 'credentials are not sent over http://'],
  ['reserved_host', 403, 'this name is reserved for the proxy itself, which serves it over http:// only'],
  ['reserved_path', 404, 'the proxy serves nothing at this path of its reserved host'],
  ['method_refused', 405, 'the method is not allowed through this proxy'],
  ['reserved_method', 405, 'the reserved host of the proxy accepts GET and HEAD only'],
  ['proxy_auth_required', 407, 'proxy authentication failed: the token is missing or wrong'],
  ['request_timeout', 408, 'the request did not arrive in time'],
  ['uri_too_long', 414, 'the request target is too long'],
  ['expectation_failed', 417, 'the only supported expectation is 100-continue'],
  ['authority_mismatch', 421, 'the request is for another host or port than its CONNECT tunnel'],
  ['too_many_requests', 429, 'too many requests to the proxy itself'],
  ['head_too_large', 431, 'the request head is too large'],
  ['internal_error', 500, 'internal error of the proxy'],
  ['transfer_coding_refused', 501, 'the only supported transfer coding is chunked'],
  ['callback_failed', 502, 'callback resolution failed'],
  ['rule_unusable', 502, 'the rule for this host cannot be applied, and without it nothing is sent'],
  ['dns_failed', 502, 'the host could not be resolved'],
  ['upstream_unreachable', 502, 'the upstream could not be reached'],
  ['upstream_untrusted', 502, 'the TLS certificate of the upstream is not trusted'],
  [
    'client_certificate_required',
    502,
    'the upstream asks for a TLS client certificate, which this proxy does not have, and has ended the connection',
  ],
  ['upstream_closed', 502, 'the upstream closed the connection without a response'],
  ['upstream_malformed', 502, 'the response of the upstream is not valid HTTP/1.1'],
  ['upstream_asks_proxy_auth', 502, 'the upstream asked for proxy credentials'],
  ['scrub_impossible', 502, 'the response of the upstream cannot be searched for secrets'],
  ['alpn_changed', 502, 'the upstream does not speak HTTP/1.1'],
  ['h2_unavailable', 502, 'the upstream does not speak HTTP/2'],
  ['too_many_connections', 503, 'too many connections'],
  ['record_sink_blocked', 503, 'the record of this request could not be written'],
  ['rules_changed', 503, 'the rules changed while the request was waiting'],
  ['shutting_down', 503, 'the proxy is shutting down'],
  ['upstream_timeout', 504, 'the upstream did not respond in time'],
  ['version_refused', 505, 'the only supported versions are HTTP/1.0 and HTTP/1.1'],
];

const hints: Readonly<Partial<Record<RefusalCode, string>>> = {
  malformed_request: 'the record of the request names what is not valid: correct the client',
  host_invalid: 'send one Host field, with the host and port of the URL',
  host_mismatch: 'send a Host field with the host and port of the request target',
  target_invalid: 'send a path inside a tunnel, and an http:// URL to the proxy port',
  access_denied: 'a tenant can list the host in access_control.allow_list, or remove it from deny_list',
  address_denied:
    'no setting allows it: metadata services, link-local addresses and the own listeners of the proxy are never reached',
  method_refused:
    'TRACE, TRACK, CONNECT inside a tunnel and Max-Forwards are never forwarded: use another method',
  request_timeout:
    'send the whole request sooner, or let the operator raise timeouts.head_ms or timeouts.client_idle_ms',
  uri_too_long: 'send a shorter URL, or let the operator raise limits.max_target_bytes',
  expectation_failed: 'send Expect: 100-continue, or no Expect field',
  authority_mismatch: 'open a tunnel of its own for each host and port',
  head_too_large:
    'send fewer or shorter headers, or let the operator raise limits.max_request_head_bytes or limits.max_fields',
  internal_error: 'the log of the proxy names the error: report it',
  transfer_coding_refused: 'send Transfer-Encoding: chunked alone, or Content-Length',
  rule_unusable:
    'the record of the request names the cause: set the workspace secret that the rule names, or change the rule',
  dns_failed: 'check the name: the machine of the proxy must resolve it within timeouts.dns_ms',
  upstream_unreachable:
    'the record of the request names the cause: check the port, and that the machine of the proxy can reach the host',
  upstream_closed: 'send the request again if that is safe; the upstream may have restarted',
  upstream_malformed:
    'the record of the request names what is not valid: correct the upstream, or list it in no_proxy',
  upstream_asks_proxy_auth: 'the host is a proxy itself: send the request to the host behind it',
  too_many_connections:
    'close connections or try again later, or let the operator raise limits.max_connections',
  record_sink_blocked:
    'try again later; the operator must read the log, or set log.when_blocked (SALLYPORT_LOG_WHEN_BLOCKED)',
  shutting_down: 'connect again when the proxy has started again',
  upstream_timeout:
    'try again later, or let the operator raise timeouts.connect_ms or timeouts.response_idle_ms',
  version_refused: 'send HTTP/1.1',
  scrub_impossible:
    '`scrub: body` is set for this host: its responses must be complete and without a content encoding',
  authority_invalid: 'send host:port, with a port from 1 to 65535',
  use_connect: 'set HTTPS_PROXY, so that the client sends CONNECT',
  not_a_proxy_request: 'set HTTP_PROXY and HTTPS_PROXY to this address',
  client_certificate_required:
    'remove the host from match_hosts of rules and callbacks: its TLS is then that of the client, client certificate included',
  tls_at_proxy_port: 'begin the proxy URL with http://, in HTTPS_PROXY too',
  socks_at_proxy_port: 'begin the proxy URL with http:// instead of socks5://',
  ambiguous_path: 'send the path without dot segments or nested percent-encoding',
  reserved_host: 'request it with http:// through the proxy (HTTP_PROXY), without CONNECT',
  reserved_method: 'send GET or HEAD to the reserved host',
  reserved_path: 'the paths are /, /status, /env, /ca.pem and /ca-bundle.pem',
  too_many_requests: 'a client gets 10 responses a second: send the request again after Retry-After',
  client_denied: 'the operator can allow the address with allow_clients',
  port_denied: 'the operator can allow the port with egress.ports; a tenant can list host:port in allow_list',
  address_private:
    'the operator can allow the address with egress.allow_private (SALLYPORT_EGRESS_ALLOW_PRIVATE)',
  cleartext_refused: 'use https://, or let the operator list the destination in inject_cleartext',
  proxy_auth_required: 'use http://sallyport:TOKEN@host:port as the proxy URL',
  alpn_changed: 'connect again and offer h2 by ALPN too',
  h2_unavailable: 'connect again and offer http/1.1 by ALPN too',
  upstream_untrusted:
    'the operator can add its CA with SALLYPORT_UPSTREAM_CA; the record of the request names the cause',
  rules_changed: 'send the request again',
};

const forwarded = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

function parts(bytes: Buffer): { startLine: string; fields: string[]; body: string } {
  const text = bytes.toString('latin1');
  const end = text.indexOf('\r\n\r\n');
  const [startLine = '', ...fields] = text.slice(0, end).split('\r\n');
  return { startLine, fields, body: text.slice(end + 4) };
}

describe('the refusal catalogue', () => {
  it('holds these codes with these statuses and texts, and no others', () => {
    const rows = refusalCatalogue().map(({ code, status, message }) => [code, status, message]);
    expect(rows).toEqual(catalogue);
  });

  it.each(catalogue)(
    '%s is a %i with a JSON body that says what happened and what to do',
    (code, status, text) => {
      const { startLine, fields, body } = parts(refusalBytes(refuse(code), { method: 'GET', close: true }));
      expect(startLine).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z][A-Za-z -]+$`));
      expect(startLine).not.toMatch(/ \d{3} Error$/);
      expect(JSON.parse(body)).toEqual({
        error: code,
        message: text,
        ...(hints[code] === undefined ? {} : { hint: hints[code] }),
      });
      const extra =
        status === 407
          ? ['Proxy-Authenticate: Basic realm="sallyport", charset="UTF-8"']
          : status === 405
            ? [code === 'reserved_method' ? 'Allow: GET, HEAD' : `Allow: ${forwarded}`]
            : status === 429
              ? ['Retry-After: 1']
              : [];
      expect(fields).toEqual([
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        `X-Sallyport-Error: ${code}`,
        'Cache-Control: no-store',
        ...extra,
        'Connection: close',
      ]);
    },
  );

  it('has a hint for every code but that of a callback, whose body is a contract with integrators', () => {
    const without = refusalCatalogue().filter(({ code }) => refuse(code as RefusalCode).hint === undefined);
    expect(without.map(({ code }) => code)).toEqual(['callback_failed']);
  });

  it.each(catalogue)('%s has its code as the reason phrase of a refused CONNECT', (code, status) => {
    const { startLine } = parts(refusalBytes(refuse(code), { method: 'CONNECT', close: true }));
    expect(startLine).toBe(`HTTP/1.1 ${status} ${code}`);
  });

  it('keeps the cause out of every byte that the client reads', () => {
    const refusal = refuse('upstream_unreachable', 'ECONNREFUSED 10.1.2.3:443');
    expect(refusal.cause).toBe('ECONNREFUSED 10.1.2.3:443');
    expect(refusalBytes(refusal, { method: 'GET', close: true }).toString()).not.toContain('10.1.2.3');
  });

  it('for HEAD is the head of the same response without the body', () => {
    const full = refusalBytes(refuse('access_denied'), { method: 'GET', close: false });
    const bare = refusalBytes(refuse('access_denied'), { method: 'HEAD', close: false });
    expect(full.subarray(0, bare.length)).toEqual(bare);
    expect(parts(bare).body).toBe('');
  });

  it('has Connection: close only if the connection is closed', () => {
    const { fields } = parts(refusalBytes(refuse('access_denied'), { method: 'GET', close: false }));
    expect(fields.filter((field) => field.startsWith('Connection'))).toEqual([]);
  });

  it('distinguishes a refusal from every other value', () => {
    expect(isRefusal(refuse('access_denied'))).toBe(true);
    expect(isRefusal({ authority: 'a.test:443' })).toBe(false);
  });
});
