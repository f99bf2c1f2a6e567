// The one authority of a request: what a client may send about the host, and the target that results.
import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../../src/proxy/refusal.ts';
import {
  type RequestTarget,
  targetInTunnel,
  targetOnProxyPort,
} from '../../../src/proxy/gate/request-target.ts';
import { authorityOf, requestHead } from '../request-head.ts';

/** `PATH` of a target that stays as it is, `PATH (rewritten)`, each with ` +Host: x` if one is added; or a code. */
function outcome(target: ReturnType<typeof targetInTunnel>): string {
  if (isRefusal(target)) return target.refused;
  const { path, rewritten, addedHost } = target as RequestTarget;
  if (rewritten) expect(rewritten.toString('latin1')).toBe(path);
  return `${path}${rewritten ? ' (rewritten)' : ''}${addedHost === undefined ? '' : ` +Host: ${addedHost}`}`;
}

describe('a request in a tunnel to good.test:443, over TLS', () => {
  const tunnel = authorityOf('good.test:443');
  const rows: readonly (readonly [string, string, readonly string[], string])[] = [
    ['Host with the name', '/v1/x?q=1', ['Host: good.test'], '/v1/x?q=1'],
    ['Host with the default port', '/', ['Host: good.test:443'], '/'],
    ['Host in another case, with a trailing dot', '/', ['Host: GOOD.Test.'], '/'],
    ['Host of another host', '/', ['Host: evil.test'], 'authority_mismatch'],
    ['Host of a sub-domain', '/', ['Host: a.good.test'], 'authority_mismatch'],
    ['Host with another port', '/', ['Host: good.test:8443'], 'authority_mismatch'],
    ['Host with the port of http', '/', ['Host: good.test:80'], 'authority_mismatch'],
    ['no Host', '/', [], 'host_invalid'],
    ['two Hosts that agree', '/', ['Host: good.test', 'Host: good.test'], 'host_invalid'],
    ['two Hosts, the first right', '/', ['Host: good.test', 'Host: evil.test'], 'host_invalid'],
    ['two Hosts, the second right', '/', ['Host: evil.test', 'Host: good.test'], 'host_invalid'],
    ['an empty Host', '/', ['Host:'], 'host_invalid'],
    ['a list in Host', '/', ['Host: good.test, evil.test'], 'host_invalid'],
    ['userinfo in Host', '/', ['Host: u@good.test'], 'host_invalid'],
    ['a path in Host', '/', ['Host: good.test/x'], 'host_invalid'],
    ['a space in Host', '/', ['Host: good.test x'], 'host_invalid'],
    ['two trailing dots in Host', '/', ['Host: good.test..'], 'host_invalid'],
    ['port 0 in Host', '/', ['Host: good.test:0'], 'host_invalid'],
    ['a port with a leading zero in Host', '/', ['Host: good.test:0443'], 'host_invalid'],
    ['a scheme in Host', '/', ['Host: https://good.test'], 'host_invalid'],
    ['bytes above ASCII in Host', '/', ['Host: good\u00e9.test'], 'host_invalid'],
    ['a percent escape in Host', '/', ['Host: good%2etest'], 'host_invalid'],
    ['absolute-form that agrees', 'https://good.test/a?b', ['Host: good.test'], '/a?b (rewritten)'],
    ['absolute-form in capitals', 'HTTPS://GOOD.TEST:443/a', ['Host: good.test'], '/a (rewritten)'],
    ['absolute-form without a path', 'https://good.test', ['Host: good.test'], '/ (rewritten)'],
    ['absolute-form with a query alone', 'https://good.test?q', ['Host: good.test'], '/?q (rewritten)'],
    ['absolute-form of another host', 'https://evil.test/', ['Host: good.test'], 'authority_mismatch'],
    [
      'absolute-form that agrees, Host that does not',
      'https://good.test/',
      ['Host: evil.test'],
      'authority_mismatch',
    ],
    ['absolute-form with another port', 'https://good.test:444/', ['Host: good.test'], 'authority_mismatch'],
    ['absolute-form with userinfo', 'https://good.test@evil.test/', ['Host: good.test'], 'authority_invalid'],
    ['absolute-form of http', 'http://good.test/', ['Host: good.test'], 'target_invalid'],
    [
      'absolute-form of http with the port of https',
      'http://good.test:443/',
      ['Host: good.test'],
      'target_invalid',
    ],
    ['absolute-form of ftp', 'ftp://good.test/', ['Host: good.test'], 'target_invalid'],
    ['absolute-form without a host', 'https:///x', ['Host: good.test'], 'authority_invalid'],
    ['a URL inside the path', '/x?u=http://evil.test/', ['Host: good.test'], '/x?u=http://evil.test/'],
    ['authority-form', 'good.test:443', ['Host: good.test'], 'target_invalid'],
    ['asterisk-form without OPTIONS', '*', ['Host: good.test'], 'target_invalid'],
    ['two slashes', '//evil.test/x', ['Host: good.test'], '//evil.test/x'],
  ];
  it.each(rows)('with %s', (_, target, fields, expected) => {
    const head = requestHead(`GET ${target} HTTP/1.1`, ...fields);
    expect(outcome(targetInTunnel(head, tunnel, 'https'))).toBe(expected);
  });

  it('with OPTIONS and an asterisk stays as it is', () => {
    const head = requestHead('OPTIONS * HTTP/1.1', 'Host: good.test');
    expect(outcome(targetInTunnel(head, tunnel, 'https'))).toBe('*');
    const more = requestHead('OPTIONS *x HTTP/1.1', 'Host: good.test');
    expect(outcome(targetInTunnel(more, tunnel, 'https'))).toBe('target_invalid');
  });

  it('with OPTIONS on an absolute-form without a path is about the server (RFC 9112 §3.2.4)', () => {
    const head = requestHead('OPTIONS https://good.test HTTP/1.1', 'Host: good.test');
    expect(outcome(targetInTunnel(head, tunnel, 'https'))).toBe('* (rewritten)');
    const path = requestHead('OPTIONS https://good.test/ HTTP/1.1', 'Host: good.test');
    expect(outcome(targetInTunnel(path, tunnel, 'https'))).toBe('/ (rewritten)');
  });
});

describe('HTTP/1.0 without Host', () => {
  it.each([
    ['good.test:443', 'https', 'good.test'],
    ['good.test:80', 'https', 'good.test:80'],
    ['good.test:80', 'http', 'good.test'],
    ['good.test:8443', 'https', 'good.test:8443'],
    ['[::1]:443', 'https', '[::1]'],
    ['[::1]:8443', 'https', '[::1]:8443'],
    ['127.0.0.1:443', 'https', '127.0.0.1'],
  ] as const)('in a tunnel to %s over %s gets Host: %s', (authority, scheme, host) => {
    const head = requestHead('GET / HTTP/1.0');
    expect(outcome(targetInTunnel(head, authorityOf(authority), scheme))).toBe(`/ +Host: ${host}`);
  });

  it('but with a wrong one is refused as any other', () => {
    const head = requestHead('GET / HTTP/1.0', 'Host: evil.test');
    expect(outcome(targetInTunnel(head, authorityOf('good.test:443'), 'https'))).toBe('authority_mismatch');
  });
});

describe('Host in a tunnel to an address', () => {
  it.each([
    ['[2001:db8::1]:443', 'Host: [2001:DB8:0::1]', '/'],
    ['[2001:db8::1]:443', 'Host: 2001:db8::1', 'host_invalid'],
    ['127.0.0.1:443', 'Host: 127.0.0.1', '/'],
    ['127.0.0.1:443', 'Host: 127.1', 'host_invalid'],
    ['127.0.0.1:443', 'Host: localhost', 'authority_mismatch'],
    ['[::1]:443', 'Host: [::ffff:127.0.0.1]', 'authority_mismatch'],
  ])('%s, %s', (authority, host, expected) => {
    const head = requestHead('GET / HTTP/1.1', host);
    expect(outcome(targetInTunnel(head, authorityOf(authority), 'https'))).toBe(expected);
  });
});

describe('a request on the proxy port', () => {
  const rows: readonly (readonly [string, string, readonly string[], string])[] = [
    ['http:// and a Host that agrees', 'http://a.test/x?y', ['Host: a.test'], '/x?y (rewritten)'],
    ['http:// and a Host with the default port', 'http://a.test/', ['Host: a.test:80'], '/ (rewritten)'],
    ['http:// with the default port', 'http://a.test:80/', ['Host: a.test'], '/ (rewritten)'],
    ['a scheme in capitals', 'HTTP://A.TEST/', ['Host: a.test'], '/ (rewritten)'],
    ['no path', 'http://a.test', ['Host: a.test'], '/ (rewritten)'],
    ['a Host that does not agree', 'http://a.test/', ['Host: b.test'], 'host_mismatch'],
    ['a Host with another port', 'http://a.test/', ['Host: a.test:81'], 'host_mismatch'],
    ['no Host', 'http://a.test/', [], 'host_invalid'],
    ['two Hosts', 'http://a.test/', ['Host: a.test', 'Host: a.test'], 'host_invalid'],
    ['https://', 'https://a.test/', ['Host: a.test'], 'use_connect'],
    ['HTTPS://', 'HTTPS://a.test/', ['Host: a.test'], 'use_connect'],
    ['ftp://', 'ftp://a.test/', ['Host: a.test'], 'target_invalid'],
    ['file:///', 'file:///etc/passwd', ['Host: a.test'], 'target_invalid'],
    ['ws://', 'ws://a.test/', ['Host: a.test'], 'target_invalid'],
    ['http+unix://', 'http+unix://%2Fvar%2Frun%2Fx/', ['Host: a.test'], 'target_invalid'],
    ['origin-form', '/x', ['Host: a.test'], 'not_a_proxy_request'],
    ['an asterisk', '*', ['Host: a.test'], 'not_a_proxy_request'],
    ['authority-form', 'a.test:80', ['Host: a.test'], 'target_invalid'],
    ['a scheme without slashes', 'http:a.test/', ['Host: a.test'], 'target_invalid'],
    ['userinfo', 'http://u:p@a.test/', ['Host: a.test'], 'authority_invalid'],
    ['an empty host', 'http:///x', ['Host: a.test'], 'authority_invalid'],
    ['an address in short form', 'http://127.1/', ['Host: 127.1'], 'authority_invalid'],
    ['an address as a number', 'http://2130706433/', ['Host: 2130706433'], 'authority_invalid'],
    ['port 0', 'http://a.test:0/', ['Host: a.test'], 'authority_invalid'],
  ];
  it.each(rows)('with %s', (_, target, fields, expected) => {
    expect(outcome(targetOnProxyPort(requestHead(`GET ${target} HTTP/1.1`, ...fields)))).toBe(expected);
  });

  it('gets its Host from the target on HTTP/1.0', () => {
    const head = requestHead('GET http://a.test:8080/ HTTP/1.0');
    expect(outcome(targetOnProxyPort(head))).toBe('/ (rewritten) +Host: a.test:8080');
  });
});
