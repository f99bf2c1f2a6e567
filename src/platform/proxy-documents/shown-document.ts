// How a proxy_config is shown to callers: as its author wrote it, with `is_set` in the place of each opaque value. Pure.
import { toProxyConfigDocument } from '../../policy/document/proxy-config-document.ts';
import type { ProxyDocument } from './parsed-document.ts';

/** Fit for JSON. What was read may be sent back unchanged: the values are kept. */
export function toShownDocument(document: ProxyDocument): object {
  return toProxyConfigDocument(document, () => ({ is_set: true })) as object;
}
