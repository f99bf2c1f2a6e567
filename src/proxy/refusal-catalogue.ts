// The closed catalogue of refusals: for each code the status, the public message and what to do. The texts are fixed, so that
// nothing of a request or of an upstream is in them.

export type RefusalEntry = readonly [status: number, message: string, hint?: string];

export const catalogue = {
  malformed_request: [
    400,
    'the request is not valid HTTP/1.1',
    'the record of the request names what is not valid: correct the client',
  ],
  authority_invalid: [
    400,
    'the host or port of the request is not valid',
    'send host:port, with a port from 1 to 65535',
  ],
  host_invalid: [
    400,
    'the request must have exactly one valid Host field',
    'send one Host field, with the host and port of the URL',
  ],
  host_mismatch: [
    400,
    'the Host field and the request target name different hosts',
    'send a Host field with the host and port of the request target',
  ],
  target_invalid: [
    400,
    'the request target is not valid on this connection',
    'send a path inside a tunnel, and an http:// URL to the proxy port',
  ],
  use_connect: [
    400,
    'requests for https:// targets must use a CONNECT tunnel',
    'set HTTPS_PROXY, so that the client sends CONNECT',
  ],
  not_a_proxy_request: [
    400,
    'this is a forward proxy, and the request is not a proxy request',
    'set HTTP_PROXY and HTTPS_PROXY to this address',
  ],
  tls_at_proxy_port: [
    400,
    'the client speaks TLS to the proxy port, which expects HTTP without TLS',
    'begin the proxy URL with http://, in HTTPS_PROXY too',
  ],
  socks_at_proxy_port: [
    400,
    'the client speaks SOCKS to the proxy port, which expects HTTP',
    'begin the proxy URL with http:// instead of socks5://',
  ],
  ambiguous_path: [
    400,
    'the path can be read in more than one way',
    'send the path without dot segments or nested percent-encoding',
  ],
  access_denied: [
    403,
    'access_control of this sandbox does not allow the host',
    'a tenant can list the host in access_control.allow_list, or remove it from deny_list',
  ],
  client_denied: [
    403,
    'this client address may not use the proxy',
    'the operator can allow the address with allow_clients',
  ],
  port_denied: [
    403,
    'the port is not allowed for this host',
    'the operator can allow the port with egress.ports; a tenant can list host:port in allow_list',
  ],
  address_denied: [
    403,
    'the host resolves to an address that this proxy never connects to',
    'no setting allows it: metadata services, link-local addresses and the own listeners of the proxy are never reached',
  ],
  address_private: [
    403,
    'the host resolves to a private address',
    'the operator can allow the address with egress.allow_private (SALLYPORT_EGRESS_ALLOW_PRIVATE)',
  ],
  cleartext_refused: [
    403,
    'credentials are not sent over http://',
    'use https://, or let the operator list the destination in inject_cleartext',
  ],
  reserved_host: [
    403,
    'this name is reserved for the proxy itself, which serves it over http:// only',
    'request it with http:// through the proxy (HTTP_PROXY), without CONNECT',
  ],
  reserved_path: [
    404,
    'the proxy serves nothing at this path of its reserved host',
    'the paths are /, /status, /env, /ca.pem and /ca-bundle.pem',
  ],
  method_refused: [
    405,
    'the method is not allowed through this proxy',
    'TRACE, TRACK, CONNECT inside a tunnel and Max-Forwards are never forwarded: use another method',
  ],
  reserved_method: [
    405,
    'the reserved host of the proxy accepts GET and HEAD only',
    'send GET or HEAD to the reserved host',
  ],
  proxy_auth_required: [
    407,
    'proxy authentication failed: the token is missing or wrong',
    'use http://sallyport:TOKEN@host:port as the proxy URL',
  ],
  request_timeout: [
    408,
    'the request did not arrive in time',
    'send the whole request sooner, or let the operator raise timeouts.head_ms or timeouts.client_idle_ms',
  ],
  uri_too_long: [
    414,
    'the request target is too long',
    'send a shorter URL, or let the operator raise limits.max_target_bytes',
  ],
  expectation_failed: [
    417,
    'the only supported expectation is 100-continue',
    'send Expect: 100-continue, or no Expect field',
  ],
  authority_mismatch: [
    421,
    'the request is for another host or port than its CONNECT tunnel',
    'open a tunnel of its own for each host and port',
  ],
  too_many_requests: [
    429,
    'too many requests to the proxy itself',
    'a client gets 10 responses a second: send the request again after Retry-After',
  ],
  head_too_large: [
    431,
    'the request head is too large',
    'send fewer or shorter headers, or let the operator raise limits.max_request_head_bytes or limits.max_fields',
  ],
  internal_error: [500, 'internal error of the proxy', 'the log of the proxy names the error: report it'],
  transfer_coding_refused: [
    501,
    'the only supported transfer coding is chunked',
    'send Transfer-Encoding: chunked alone, or Content-Length',
  ],
  callback_failed: [502, 'callback resolution failed'],
  rule_unusable: [
    502,
    'the rule for this host cannot be applied, and without it nothing is sent',
    'the record of the request names the cause: set the workspace secret that the rule names, or change the rule',
  ],
  dns_failed: [
    502,
    'the host could not be resolved',
    'check the name: the machine of the proxy must resolve it within timeouts.dns_ms',
  ],
  upstream_unreachable: [
    502,
    'the upstream could not be reached',
    'the record of the request names the cause: check the port, and that the machine of the proxy can reach the host',
  ],
  upstream_untrusted: [
    502,
    'the TLS certificate of the upstream is not trusted',
    'the operator can add its CA with SALLYPORT_UPSTREAM_CA; the record of the request names the cause',
  ],
  client_certificate_required: [
    502,
    'the upstream asks for a TLS client certificate, which this proxy does not have, and has ended the connection',
    'remove the host from match_hosts of rules and callbacks: its TLS is then that of the client, client certificate included',
  ],
  upstream_closed: [
    502,
    'the upstream closed the connection without a response',
    'send the request again if that is safe; the upstream may have restarted',
  ],
  upstream_malformed: [
    502,
    'the response of the upstream is not valid HTTP/1.1',
    'the record of the request names what is not valid: correct the upstream, or list it in no_proxy',
  ],
  upstream_asks_proxy_auth: [
    502,
    'the upstream asked for proxy credentials',
    'the host is a proxy itself: send the request to the host behind it',
  ],
  scrub_impossible: [
    502,
    'the response of the upstream cannot be searched for secrets',
    '`scrub: body` is set for this host: its responses must be complete and without a content encoding',
  ],
  alpn_changed: [502, 'the upstream does not speak HTTP/1.1', 'connect again and offer h2 by ALPN too'],
  h2_unavailable: [502, 'the upstream does not speak HTTP/2', 'connect again and offer http/1.1 by ALPN too'],
  too_many_connections: [
    503,
    'too many connections',
    'close connections or try again later, or let the operator raise limits.max_connections',
  ],
  record_sink_blocked: [
    503,
    'the record of this request could not be written',
    'try again later; the operator must read the log, or set log.when_blocked (SALLYPORT_LOG_WHEN_BLOCKED)',
  ],
  rules_changed: [503, 'the rules changed while the request was waiting', 'send the request again'],
  shutting_down: [503, 'the proxy is shutting down', 'connect again when the proxy has started again'],
  upstream_timeout: [
    504,
    'the upstream did not respond in time',
    'try again later, or let the operator raise timeouts.connect_ms or timeouts.response_idle_ms',
  ],
  version_refused: [505, 'the only supported versions are HTTP/1.0 and HTTP/1.1', 'send HTTP/1.1'],
} as const satisfies Readonly<Record<string, RefusalEntry>>;
