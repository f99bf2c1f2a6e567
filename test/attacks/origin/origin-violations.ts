// Compares the expectation of a row of stage `origin` with what was observed. The texts of refusals are repeated here: a
// refusal with any other text contains something from the host. Pure.
import { type OriginObservation, plainResponse } from './origin-driver.ts';
import { type OriginRow, expand } from './origin-script.ts';

export const refusals: Readonly<Record<string, readonly [status: string, message: string, hint?: string]>> = {
  upstream_malformed: [
    '502 Bad Gateway',
    'the response of the upstream is not valid HTTP/1.1',
    'the record of the request names what is not valid: correct the upstream, or list it in no_proxy',
  ],
  upstream_closed: [
    '502 Bad Gateway',
    'the upstream closed the connection without a response',
    'send the request again if that is safe; the upstream may have restarted',
  ],
  upstream_asks_proxy_auth: [
    '502 Bad Gateway',
    'the upstream asked for proxy credentials',
    'the host is a proxy itself: send the request to the host behind it',
  ],
  upstream_unreachable: [
    '502 Bad Gateway',
    'the upstream could not be reached',
    'the record of the request names the cause: check the port, and that the machine of the proxy can reach the host',
  ],
  upstream_untrusted: [
    '502 Bad Gateway',
    'the TLS certificate of the upstream is not trusted',
    'the certificate is for other names than this host: correct the host in the URL, or the certificate of the upstream',
  ],
  dns_failed: [
    '502 Bad Gateway',
    'the host could not be resolved',
    'check the name: the machine of the proxy must resolve it within timeouts.dns_ms',
  ],
  upstream_timeout: [
    '504 Gateway Timeout',
    'the upstream did not respond in time',
    'try again later, or let the operator raise timeouts.connect_ms or timeouts.response_idle_ms',
  ],
  malformed_request: [
    '400 Bad Request',
    'the request is not valid HTTP/1.1',
    'the record of the request names what is not valid: correct the client',
  ],
};

export function violations({ script, expect }: OriginRow, seen: OriginObservation): readonly string[] {
  const { before = 0, reads = 1, host } = script;
  const { end = 'open' } = expect;
  const found = [...clientViolations({ expect, isHead: isHead(script.request) }, seen)];
  const differs = (what: string, is: unknown, should: unknown): void => {
    if (JSON.stringify(is) !== JSON.stringify(should))
      found.push(`${what}: ${brief(is)}, expected ${brief(should)}`);
  };
  differs('the end of the connection', seen.end, end);
  if (host === undefined) {
    differs('the next response', seen.next, plainResponse('/next'));
    differs('the next connection of the host', seen.host, expect.host ?? 'fresh');
    differs('requests at the host', seen.heads.length, expect.arrivals ?? before + reads + 1);
    for (const head of seen.heads) {
      const injected = head.match(/^authorization: .*\r$/gim) ?? [];
      differs('the credential at the host', injected, ['Authorization: Bearer sesame>>open??now~~42~\r']);
    }
  } else differs('requests at the host', seen.heads.length, 0);
  if (expect.body !== undefined) differs('the body at the host', seen.body, expect.body);
  differs('connections elsewhere', seen.elsewhere, 0);
  if (!expect.isLeakDocumented) differs('traces of the secret', seen.traces, []);
  differs('records', seen.records.length, before + reads + 1);
  const record = seen.records[before] ?? {};
  for (const [name, value] of Object.entries(expect.record)) differs(`record.${name}`, record[name], value);
  return found;
}

function clientViolations(
  { expect: { client }, isHead }: { expect: OriginRow['expect']; isHead: boolean },
  seen: OriginObservation,
): readonly string[] {
  if (typeof client === 'object' && 'within' in client) {
    const whole = expand(client.within);
    return whole.startsWith(seen.client)
      ? []
      : [`the client read ${brief(seen.client)}, beyond ${brief(whole)}`];
  }
  const isRefusal = typeof client === 'object' && 'refused' in client;
  const wanted = isRefusal ? refusalText(client.refused, seen.client, isHead) : expand(client);
  return seen.client === wanted ? [] : [`the client read ${brief(seen.client)}, expected ${brief(wanted)}`];
}

/** Interim heads may precede it: they were already relayed. */
function refusalText(code: string, read: string, isHead: boolean): string {
  const [status = '', message = '', hint] = refusals[code] ?? [];
  const body = `${JSON.stringify({ error: code, message, hint })}\n`;
  const isEnding = /\r\nConnection: close\r\n/.test(read);
  return [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `X-Sallyport-Error: ${code}`,
    'Cache-Control: no-store',
    ...(isEnding ? ['Connection: close'] : []),
    '',
    isHead ? '' : body,
  ].join('\r\n');
}

function isHead(request: readonly string[] | undefined): boolean {
  return request?.[0]?.startsWith('HEAD ') ?? false;
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length <= 600 ? text : `${text.slice(0, 300)}… ${text.length} …${text.slice(-200)}`;
}
