// Reads a proxy_config: unknown input in; the authored form with warnings, or every issue at once, out.
// Reading JSON or YAML is the caller's part; so is resolving secrets (compile.ts).
import { capIssues, type Issue, parseWith, toJsonSchema, type z } from '../../base/schema.ts';
import { findConflicts } from './proxy-config-conflicts.ts';
import {
  type ProxyConfig,
  type ProxyConfigSchema,
  updateSchema,
  wholeSchema,
} from './proxy-config-schema.ts';
import { findStructureIssues } from './proxy-config-structure.ts';
import { keepStoredValues } from './stored-values.ts';

export type ParsedProxyConfig =
  | { readonly ok: true; readonly value: ProxyConfig; readonly warnings: readonly Issue[] }
  | { readonly ok: false; readonly issues: readonly Issue[] };

export type ParseOptions = {
  /** Public suffixes that the operator lets a wildcard span. */
  readonly allowWildcards?: readonly string[] | undefined;
  /** What `input` replaces: opaque values that `input` leaves out are kept from there. Without it each must be given. */
  readonly stored?: ProxyConfig | undefined;
};

/** Each issue's `loc` is a path into `input`. */
export function parseProxyConfig(input: unknown, options: ParseOptions = {}): ParsedProxyConfig {
  const { allowWildcards = [], stored } = options;
  const malformed = findStructureIssues(input);
  if (malformed.length > 0) return { ok: false, issues: capIssues(malformed) };
  const schema = stored === undefined ? wholeSchema : updateSchema();
  const parsed = parseWith(schema.document, input);
  const known = parsed.ok ? parsed.value : soundParts(input, parsed.issues, schema);
  const kept = stored === undefined ? { value: known, issues: [] } : keepStoredValues(known, stored);
  const conflicts = findConflicts(known, allowWildcards);
  const issues = [...(parsed.ok ? [] : parsed.issues), ...kept.issues, ...conflicts.issues];
  if (!parsed.ok || issues.length > 0) return { ok: false, issues: capIssues(issues) };
  return { ok: true, value: kept.value, warnings: capIssues(conflicts.warnings) };
}

/** The JSON Schema of a proxy_config, for editors; it says less than parseProxyConfig, never more. */
export function proxyConfigJsonSchema(): unknown {
  return toJsonSchema(wholeSchema.document);
}

/** What can still be checked of a document at fault: its sound entries, each in its place. */
function soundParts(input: unknown, issues: readonly Issue[], schema: ProxyConfigSchema): ProxyConfig {
  const { rules, callbacks, access_control: access } = toRecord(input);
  const lists = parseWith(schema.accessControl, access);
  const invalid = new Set(issues.map(({ loc: [list, index] }) => `${list}.${index}`));
  // An entry at fault is not read a second time.
  const sound = <T>(list: string, entries: unknown, entrySchema: z.ZodType<T>, fallback: T): T[] =>
    toList(entries).map((entry, i) =>
      invalid.has(`${list}.${i}`) ? fallback : soundOr(entrySchema, entry, fallback),
    );
  return {
    rules: sound('rules', rules, schema.rule, INVALID_RULE),
    callbacks: sound('callbacks', callbacks, schema.callback, INVALID_CALLBACK),
    // It is only ever warned of, and a document at fault has no warnings.
    no_proxy: [],
    access_control: lists.ok ? lists.value : undefined,
  };
}

// Entries at fault keep their place, so that the others keep their index.
const INVALID = { enabled: false, match_hosts: [], scrub: 'head' } as const;
const INVALID_RULE = { ...INVALID, env_vars: {}, match_paths: [], headers: [], no_proxy: [] } as const;
const INVALID_CALLBACK = { ...INVALID, url: '', request_headers: [], ttl_seconds: 60 } as const;

function soundOr<T>(schema: z.ZodType<T>, input: unknown, fallback: T): T {
  const parsed = parseWith(schema, input);
  return parsed.ok ? parsed.value : fallback;
}

function toRecord(input: unknown): Readonly<Record<string, unknown>> {
  return typeof input === 'object' ? { ...input } : {};
}

function toList(input: unknown): readonly unknown[] {
  return Array.isArray(input) ? input : [];
}
