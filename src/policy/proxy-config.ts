// Reads a proxy_config: unknown input in; the authored form with warnings, or every issue at once, out.
// Reading JSON or YAML is the caller's part; so is resolving secrets (compile.ts).
import { type Issue, type Loc, parseWith, toJsonSchema, type z } from '../base/schema.ts';
import { findConflicts } from './proxy-config-conflicts.ts';
import { type ProxyConfig, proxyConfigParts, proxyConfigSchema } from './proxy-config-schema.ts';

export type ParsedProxyConfig =
  | { readonly ok: true; readonly value: ProxyConfig; readonly warnings: readonly Issue[] }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** `allowWildcards`: public suffixes that the operator lets a wildcard span. Each issue's `loc` is a path into `input`. */
export function parseProxyConfig(
  input: unknown,
  options: { readonly allowWildcards?: readonly string[] } = {},
): ParsedProxyConfig {
  const malformed = structureIssues(input, []);
  if (malformed.length > 0) return { ok: false, issues: malformed };
  const parsed = parseWith(proxyConfigSchema, input);
  const conflicts = findConflicts(parsed.ok ? parsed.value : soundParts(input), options.allowWildcards ?? []);
  const issues = [...(parsed.ok ? [] : parsed.issues), ...conflicts.issues];
  if (!parsed.ok || issues.length > 0) return { ok: false, issues };
  return { ok: true, value: parsed.value, warnings: conflicts.warnings };
}

/** The JSON Schema of a proxy_config, for editors; it says less than parseProxyConfig, never more. */
export function proxyConfigJsonSchema(): unknown {
  return toJsonSchema(proxyConfigSchema);
}

const MAX_DEPTH = 16;

/** What would mislead the reader behind us: nesting, `__proto__` as a key, text that is not Unicode. */
function structureIssues(input: unknown, loc: Loc): Issue[] {
  if (loc.length > MAX_DEPTH)
    return [{ loc, msg: `Nested deeper than ${MAX_DEPTH} levels`, type: 'value_error' }];
  if (typeof input === 'string' && !input.isWellFormed())
    return [{ loc, msg: 'Input should be valid Unicode', type: 'string_unicode' }];
  if (Array.isArray(input)) return input.flatMap((value, i) => structureIssues(value, [...loc, i]));
  if (typeof input !== 'object' || input === null) return [];
  return Object.entries(input).flatMap(([key, value]) =>
    key === '__proto__' || !key.isWellFormed()
      ? [
          {
            loc: [...loc, key.toWellFormed()],
            msg: 'This key is not understood anywhere',
            type: 'extra_forbidden',
          },
        ]
      : structureIssues(value, [...loc, key.slice(0, 100)]),
  );
}

/** What can still be checked of a document at fault: its sound entries, each in its place. */
function soundParts(input: unknown): ProxyConfig {
  const { rules, callbacks, no_proxy: noProxy, access_control: access } = toRecord(input);
  const lists = parseWith(proxyConfigParts.accessControl, access);
  return {
    rules: toList(rules).map((rule) => soundOr(proxyConfigParts.rule, rule, FAULTY_RULE)),
    callbacks: toList(callbacks).map((callback) =>
      soundOr(proxyConfigParts.callback, callback, FAULTY_CALLBACK),
    ),
    no_proxy: toList(noProxy).map((entry) => (typeof entry === 'string' ? entry : '')),
    access_control: lists.ok ? lists.value : undefined,
  };
}

// Entries at fault keep their place, so that the others keep their index.
const FAULTY = { enabled: false, match_hosts: [] } as const;
const FAULTY_RULE = { ...FAULTY, env_vars: {}, match_paths: [], headers: [], no_proxy: [] } as const;
const FAULTY_CALLBACK = { ...FAULTY, url: '', request_headers: [], ttl_seconds: 60 } as const;

function soundOr<T>(schema: z.ZodType<T>, input: unknown, fallback: T): T {
  const parsed = parseWith(schema, input);
  return parsed.ok ? parsed.value : fallback;
}

function toRecord(input: unknown): Readonly<Record<string, unknown>> {
  return typeof input === 'object' && input !== null ? { ...input } : {};
}

function toList(input: unknown): readonly unknown[] {
  return Array.isArray(input) ? input : [];
}
