// Parses the proxy_config that a caller sends for a sandbox or a profile, by the same code as a sidecar. Opaque values leave it as
// Secrets. Pure.
import { InvalidInput } from '../../base/domain-error.ts';
import { type Issue, type Loc, prefixed } from '../../base/schema.ts';
import { secretNamesOf } from '../../policy/compile.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../policy/document/proxy-config.ts';
import { findPrivateCallbacks } from './private-callbacks.ts';

/** A whole proxy_config: every opaque value is there. */
export type ProxyDocument = ProxyConfig;

export type DocumentRules = {
  /** False: a callback must not name loopback or a private address. */
  readonly allowsPrivateCallbacks: boolean;
};

/** Where the document is in the body of a request. */
export const DOCUMENT_LOC: Loc = ['body', 'proxy_config'];

/**
 * Throws InvalidInput with every issue. `stored` is what the document replaces: opaque values that it leaves out are taken from
 * there, as a sidecar does, but for destinations that changed.
 */
export function parseDocument(
  input: unknown,
  { allowsPrivateCallbacks }: DocumentRules,
  stored?: ProxyDocument,
): ProxyDocument {
  if ((JSON.stringify(input) ?? '').length > MAX_CHARS) throw invalidDocument([TOO_LONG]);
  const parsed = parseProxyConfig(input, { stored });
  if (!parsed.ok) throw invalidDocument(parsed.issues);
  const issues = allowsPrivateCallbacks ? [] : findPrivateCallbacks(parsed.value.callbacks);
  if (issues.length > 0) throw invalidDocument(issues);
  return parsed.value;
}

/** The workspace secrets that its enabled rules name, each once. */
export function secretNamesIn(document: ProxyDocument): readonly string[] {
  return secretNamesOf(document);
}

/** Of JSON. Parsing takes up to a tenth of a second for a document of this length, in which the process serves nobody else. */
const MAX_CHARS = 131_072;

const TOO_LONG: Issue = {
  loc: [],
  msg: `The document must have at most ${MAX_CHARS} characters`,
  type: 'too_long',
};

function invalidDocument(issues: readonly Issue[]): InvalidInput {
  return new InvalidInput(prefixed(issues, DOCUMENT_LOC));
}
