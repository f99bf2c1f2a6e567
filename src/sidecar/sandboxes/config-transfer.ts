// How a parsed proxy_config passes between two threads. As JSON a Secret is `[secret]`, so the values travel beside the
// config, and one that the receiver has already travels as a number. One of the files that may reveal secrets.
import { Secret } from '../../base/secret.ts';
import type { HeaderEntry, OpaqueEntry, ProxyConfig } from '../../policy/document/proxy-config-schema.ts';

/** The text of a value that the document gave, or the number of a value that the receiver has. */
export type SentValue = string | number;

/** The values of all opaque headers, in their order. */
export function opaqueValues(config: ProxyConfig): readonly Secret[] {
  const headers: readonly HeaderEntry[] = [
    ...config.rules.flatMap((rule) => rule.headers),
    ...config.callbacks.flatMap((callback) => callback.request_headers),
  ];
  return headers.flatMap((header) => (header.type === 'opaque' ? header.value : []));
}

/** The config with other values, in the order of `opaqueValues`. */
export function withValues(config: ProxyConfig, values: readonly Secret[]): ProxyConfig {
  const left = values.values();
  const fill = <H extends HeaderEntry>(header: H): H | OpaqueEntry => {
    if (header.type !== 'opaque') return header;
    const { value } = left.next();
    if (value === undefined) throw new Error('a config has more opaque headers than values');
    return { name: header.name, type: 'opaque', value };
  };
  const rules = config.rules.map((rule) => ({ ...rule, headers: rule.headers.map(fill) }));
  const callbacks = config.callbacks.map((callback) => ({
    ...callback,
    request_headers: callback.request_headers.map(fill),
  }));
  return { ...config, rules, callbacks };
}

/** `kept`: the values that the receiver has. They are found by identity, so that none of them is read. */
export function toSentValues(config: ProxyConfig, kept: readonly Secret[]): readonly SentValue[] {
  const numbers = new Map(kept.map((value, number) => [value, number]));
  return opaqueValues(config).map((value) => numbers.get(value) ?? value.reveal());
}

export function fromSentValues(sent: readonly SentValue[], kept: readonly Secret[]): readonly Secret[] {
  return sent.map((value) => {
    const secret = typeof value === 'string' ? new Secret(value) : kept[value];
    if (secret === undefined) throw new Error('a value is not one of those that were kept');
    return secret;
  });
}
