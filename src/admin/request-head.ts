// What an admin request says of itself, read from the raw fields: Node joins or drops repeated ones, and a field that two
// readers take differently is how one of them is fooled. Pure; nothing is judged here but form.

export type RequestHead = {
  readonly method: string;
  /** A target in origin-form (RFC 9112 §3.2.1); everything else is what a proxy is sent. */
  readonly isOriginForm: boolean;
  /** Undefined when the path holds a byte that no route has, so that nothing needs decoding or normalizing. */
  readonly path: string | undefined;
  readonly queryNames: readonly string[];
  /** Lower case, with its port; undefined unless exactly one well-formed Host came. */
  readonly host: string | undefined;
  /** A proxy or a switch of protocols left its mark. */
  readonly isProxied: boolean;
  readonly hasBody: boolean;
  /** False where two readers could disagree on where the body ends (RFC 9112 §6.1, §11.2). */
  readonly isFramedPlainly: boolean;
  /** Node's parser reads 0.9 and 2.0 as well, which are framed otherwise. */
  readonly isKnownVersion: boolean;
  /** The client waits for a 100; one of HTTP/1.0 does not know it (RFC 9110 §10.1.1). */
  readonly wantsContinue: boolean;
  /** Every value of the field, in order; `name` in lower case. */
  values(name: string): readonly string[];
};

export type RawHead = {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersion?: string | undefined;
  readonly rawHeaders: readonly string[];
};

export function readHead({ method = '', url = '', httpVersion = '1.1', rawHeaders }: RawHead): RequestHead {
  const fields = groupFields(rawHeaders);
  const values = (name: string): readonly string[] => fields.get(name) ?? [];
  const query = url.indexOf('?');
  const path = query === -1 ? url : url.slice(0, query);
  const [length = '0'] = values('content-length');
  return {
    method,
    isOriginForm: url.startsWith('/') && method !== 'CONNECT',
    path: PLAIN_PATH.test(path) && !DOT_SEGMENT.test(path) ? path : undefined,
    queryNames: query === -1 ? [] : [...new URLSearchParams(url.slice(query + 1)).keys()],
    host: readHost(values('host')),
    isProxied: method === 'CONNECT' || [...fields.keys()].some((name) => PROXY_FIELD.test(name)),
    hasBody: values('transfer-encoding').length > 0 || Number(length) > 0,
    isFramedPlainly: isPlain(values('transfer-encoding'), httpVersion),
    isKnownVersion: httpVersion === '1.1' || httpVersion === '1.0',
    wantsContinue: httpVersion === '1.1' && values('expect').length > 0,
    values,
  };
}

const PLAIN_PATH = /^\/[A-Za-z0-9._~/-]*$/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;
const PROXY_FIELD = /^(?:via|forwarded|upgrade|x-forwarded-.*|proxy-.*)$/;
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

function isPlain(codings: readonly string[], httpVersion: string): boolean {
  if (codings.length === 0) return true;
  return codings.length === 1 && codings[0]?.toLowerCase() === 'chunked' && httpVersion === '1.1';
}

function readHost(values: readonly string[]): string | undefined {
  const host = values[0]?.toLowerCase();
  return values.length === 1 && host !== undefined && HOST.test(host) ? host : undefined;
}
