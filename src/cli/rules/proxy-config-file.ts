// Finds out what a document is, a config or a proxy_config, and takes a proxy_config out of what the admin API returns.
import { isObject } from '../../base/json/json-document.ts';
import type { Loc } from '../../base/schema.ts';

export type Recognized = {
  readonly kind: 'config' | 'proxy_config';
  readonly document: unknown;
  /** Where the document is in the file. */
  readonly loc: Loc;
};

/** The keys at the top of a proxy_config. */
export const proxyConfigKeys: ReadonlySet<string> = new Set([
  'rules',
  'callbacks',
  'no_proxy',
  'access_control',
]);

/** `{"proxy_config": {...}}` is what the admin API returns and accepts; in a config file the key names a file. */
export function recognize(document: unknown): Recognized {
  if (!isObject(document)) return { kind: 'config', document, loc: [] };
  const { proxy_config: wrapped } = document;
  if (isObject(wrapped))
    return { kind: 'proxy_config', document: withStoredValues(wrapped), loc: ['proxy_config'] };
  const isProxyConfig = Object.keys(document).some((key) => proxyConfigKeys.has(key));
  return { kind: isProxyConfig ? 'proxy_config' : 'config', document, loc: [] };
}

/**
 * The document with a text in place of each opaque value that the API omits, because the proxy has it: without one the
 * document would be incomplete.
 */
function withStoredValues(document: Readonly<Record<string, unknown>>): unknown {
  const lists = Object.entries(document).map(([key, list]) => [
    key,
    Array.isArray(list) ? list.map(withStoredHeaders) : list,
  ]);
  return Object.fromEntries(lists);
}

function withStoredHeaders(entry: unknown): unknown {
  if (!isObject(entry)) return entry;
  const filled = ['headers', 'request_headers'].flatMap((key) => {
    const headers = entry[key];
    return Array.isArray(headers) ? [[key, headers.map(withStoredValue)]] : [];
  });
  return { ...entry, ...Object.fromEntries(filled) };
}

function withStoredValue(header: unknown): unknown {
  const isStored =
    isObject(header) &&
    header['type'] === 'opaque' &&
    header['is_set'] === true &&
    !Object.hasOwn(header, 'value');
  return isStored ? { ...header, value: 'stored-in-the-proxy' } : header;
}
