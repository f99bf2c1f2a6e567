// Parses a proxy_config: unknown input in; the authored form with warnings, or every issue at once, out.
// Reading JSON or YAML is the caller's part; resolving secrets is compile.ts's.
import { capIssues, type Issue, parseWith, toJsonSchema, type z } from '../../base/schema.ts';
import { findConflicts } from './proxy-config-conflicts.ts';
import {
  type ProxyConfig,
  type ProxyConfigSchema,
  updateSchema,
  wholeSchema,
} from './proxy-config-schema.ts';
import { DEFAULT_RESERVED_HOST, reservedHostIssues } from './reserved-host.ts';
import { findStructureIssues } from './proxy-config-structure.ts';
import { keepStoredValues } from './stored-values.ts';

export type ParsedProxyConfig =
  | { readonly ok: true; readonly value: ProxyConfig; readonly warnings: readonly Issue[] }
  | { readonly ok: false; readonly issues: readonly Issue[] };

export type ParseOptions = {
  /** Public suffixes that the operator allows a wildcard to cover. */
  readonly allowWildcards?: readonly string[] | undefined;
  /** The name that the proxy serves itself, canonical. */
  readonly reservedHost?: string | undefined;
  /** What `input` replaces: opaque values that `input` omits are taken from it. Without it each must be given. */
  readonly stored?: ProxyConfig | undefined;
};

/** Each issue's `loc` is a path into `input`. */
export function parseProxyConfig(input: unknown, options: ParseOptions = {}): ParsedProxyConfig {
  const { allowWildcards = [], reservedHost = DEFAULT_RESERVED_HOST, stored } = options;
  const malformed = findStructureIssues(input);
  if (malformed.length > 0) return { ok: false, issues: capIssues(malformed) };
  const schema = stored === undefined ? wholeSchema : updateSchema();
  const parsed = parseWith(schema.document, input);
  const known = parsed.ok ? parsed.value : validParts(input, parsed.issues, schema);
  const filled = stored === undefined ? { value: known, issues: [] } : keepStoredValues(known, stored);
  const conflicts = findConflicts(known, allowWildcards);
  const reserved = reservedHostIssues(known, reservedHost);
  const issues = [...(parsed.ok ? [] : parsed.issues), ...filled.issues, ...conflicts.issues, ...reserved];
  if (!parsed.ok || issues.length > 0) return { ok: false, issues: capIssues(issues) };
  return { ok: true, value: filled.value, warnings: capIssues(conflicts.warnings) };
}

/** The entries of a document with issues that have none of their own, each at its index, to be checked further. */
export function parseValidEntries(input: unknown): ProxyConfig {
  if (findStructureIssues(input).length > 0) return EMPTY;
  const parsed = parseWith(wholeSchema.document, input);
  return parsed.ok ? parsed.value : validParts(input, parsed.issues, wholeSchema);
}

/** The JSON Schema of a proxy_config, for editors. It accepts every document that parseProxyConfig accepts, and more. */
export function proxyConfigJsonSchema(): unknown {
  return toJsonSchema(wholeSchema.document);
}

/** The same of a document that replaces another one, which may omit opaque values. */
export function proxyConfigUpdateJsonSchema(): unknown {
  return toJsonSchema(updateSchema().document);
}

/** What can still be checked of an invalid document: its valid entries, each at its index. */
function validParts(input: unknown, issues: readonly Issue[], schema: ProxyConfigSchema): ProxyConfig {
  const {
    rules,
    callbacks,
    access_control: access,
  }: Record<string, unknown> = typeof input === 'object' ? { ...input } : {};
  const lists = parseWith(schema.accessControl, access);
  const invalid = new Set(issues.map(({ loc: [list, index] }) => `${list}.${index}`));
  // An invalid entry is not parsed a second time.
  const validEntries = <T>(list: string, entries: unknown, entrySchema: z.ZodType<T>, fallback: T): T[] =>
    (Array.isArray(entries) ? entries : []).map((entry: unknown, i) => {
      const parsed = invalid.has(`${list}.${i}`) ? undefined : parseWith(entrySchema, entry);
      return parsed?.ok ? parsed.value : fallback;
    });
  return {
    rules: validEntries('rules', rules, schema.rule, INVALID_RULE),
    callbacks: validEntries('callbacks', callbacks, schema.callback, INVALID_CALLBACK),
    // no_proxy only ever causes warnings, and an invalid document has none.
    no_proxy: [],
    access_control: lists.ok ? lists.value : undefined,
  };
}

const EMPTY: ProxyConfig = { rules: [], callbacks: [], no_proxy: [], access_control: undefined };

// In place of an invalid entry, so that the others keep their index.
const INVALID = { enabled: false, match_hosts: [], scrub: 'head' as const };
const INVALID_RULE = { ...INVALID, env_vars: {}, match_paths: [], headers: [], no_proxy: [] };
const INVALID_CALLBACK = { ...INVALID, url: '', request_headers: [], ttl_seconds: 60 };
