// The head of a request, read from the raw fields: Node joins or drops repeated fields, and a field that two readers
// understand differently is how one of them is deceived. Pure; each API decides what it rejects.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export type RequestHead = Readonly<ReturnType<typeof readRequestHead>>;

export type RawHead = Partial<Pick<IncomingMessage, 'method' | 'url' | 'httpVersion'>> &
  Readonly<Pick<IncomingMessage, 'rawHeaders'>>;

export function readRequestHead({ method = '', url = '', httpVersion = '1.1', rawHeaders }: RawHead) {
  const fields = groupFields(rawHeaders);
  const values = (name: string): readonly string[] => fields.get(name) ?? [];
  const codings = values('transfer-encoding');
  const lengths = values('content-length');
  const expectations = values('expect');
  return {
    method,
    /** The request target as sent: `/v1/things?limit=1`. */
    target: url,
    /** `1.1` or `1.0`; Node's parser also accepts 0.9 and 2.0, which are framed differently. */
    version: httpVersion,
    /** RFC 9112 §3.2.1; every other form is what a proxy is sent. */
    isOriginForm: url.startsWith('/') && method !== 'CONNECT',
    /** Lower case, with its port; undefined unless exactly one well-formed Host came. */
    host: readHost(values('host')),
    hasBody: codings.length > 0 || lengths.some((length) => Number(length) > 0),
    /** False where two readers could disagree on where the body ends (RFC 9112 §6.1, §11.2). */
    isFramedPlainly: codings.length === 0 || (isChunkedAlone(codings, httpVersion) && lengths.length === 0),
    /** Bytes that Content-Length announces; 0 without it. */
    contentLength: Number(lengths[0] ?? 0),
    /** HTTP/1.0 has no interim responses (RFC 9110 §10.1.1). */
    expectsContinue: httpVersion === '1.1' && expectations.length > 0,
    /** Expect holds something other than `100-continue`. */
    hasUnknownExpectation: expectations.some((value) => value.toLowerCase() !== '100-continue'),
    /** Field names in lower case. */
    names: [...fields.keys()],
    /** Every value of the field, in order; `name` in lower case. */
    values,
    /** The values of the field joined as RFC 9110 §5.3 allows; undefined when absent. */
    field: (name: string): string | undefined => fields.get(name)?.join(', '),
  };
}

/** A well-formed X-Request-Id of the caller, so that one id follows a request through several services; else a new one. */
export function requestIdOf(head: RequestHead): string {
  const [id = '', ...more] = head.values('x-request-id');
  return more.length === 0 && /^[A-Za-z0-9._-]{1,128}$/.test(id) ? id : randomUUID();
}

const HOST = /^(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/;

function groupFields(rawHeaders: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const fields = new Map<string, string[]>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = String(rawHeaders[at]).toLowerCase();
    const value = String(rawHeaders[at + 1]).trim();
    const earlier = fields.get(name);
    if (earlier === undefined) fields.set(name, [value]);
    else earlier.push(value);
  }
  return fields;
}

function isChunkedAlone(codings: readonly string[], version: string): boolean {
  return codings.length === 1 && codings[0]?.toLowerCase() === 'chunked' && version === '1.1';
}

function readHost(values: readonly string[]): string | undefined {
  const host = values[0]?.toLowerCase();
  return values.length === 1 && host !== undefined && HOST.test(host) ? host : undefined;
}
