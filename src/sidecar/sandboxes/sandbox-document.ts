// Parses the documents that create or change a sandbox: unknown input becomes a typed value, or all issues at once. The
// proxy_config and the secrets in them are parsed elsewhere.
import { parseListenAddress } from '../../base/listen-address.ts';
import { isSandboxId } from '../../base/sandbox-id.ts';
import { type Issue, type Parsed, parseWith, toJsonSchema, z } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import { toSnakeCase } from '../../base/variable-overlay.ts';
import { parseAddress } from '../../base/address.ts';
import { MIN_TOKEN_CHARS } from '../access-tokens.ts';
import type { Config } from '../config.ts';
import { type Guards, isExposed } from '../listen-address.ts';
import { wantedAuthority } from './sandbox-authority.ts';
import { type SandboxLimits, sandboxLimits } from './sandbox.ts';

const id = z.string().refine(isSandboxId, {
  message: 'must be 1 to 63 lower-case letters, digits and inner hyphens',
});
const listen = z.string().transform((text, context) => {
  const parsed = parseListenAddress(text);
  if (typeof parsed === 'string') context.addIssue({ code: 'custom', message: parsed });
  // A name would be looked up while every other change waits.
  else if (parsed.host !== 'localhost' && !parseAddress(parsed.host))
    context.addIssue({ code: 'custom', message: 'must be an IP address or localhost, and a port' });
  else return parsed;
  return z.NEVER;
});

const GENERATE = 'generate';
/** `generate`: generate a token and show it once. */
export type WantedToken = Secret | typeof GENERATE | undefined;

// Characters that the user name or password of a URL may hold unescaped.
const token = z
  .string()
  .refine(
    (text) => text === GENERATE || (text.length >= MIN_TOKEN_CHARS && /^[A-Za-z0-9._~-]{1,256}$/.test(text)),
    `must be "${GENERATE}", or ${MIN_TOKEN_CHARS} to 256 letters, digits, ".", "_", "~" and "-"`,
  )
  .transform((text): WantedToken => (text === GENERATE ? text : new Secret(text)));

const limit = z.int().min(1).max(1_000_000).optional();
const limits = z
  .strictObject(Object.fromEntries(sandboxLimits.map((key) => [toSnakeCase(key), limit])))
  .transform((given): Partial<SandboxLimits> => {
    const named = sandboxLimits.map((key) => [key, given[toSnakeCase(key)]] as const);
    return Object.fromEntries(named.filter(([, value]) => value !== undefined));
  });

/** The limits under the names that documents use. */
export function showLimits(given: SandboxLimits): Readonly<Record<string, number>> {
  return Object.fromEntries(sandboxLimits.map((key) => [toSnakeCase(key), given[key]]));
}

const creation = z.strictObject({
  id: id.optional(),
  listen: listen.optional(),
  token: token.optional(),
  ca: wantedAuthority.optional(),
  limits: limits.prefault({}),
  proxy_config: z.unknown().optional(),
  workspace_secrets: z.unknown().optional(),
});

export type SandboxDocument = Omit<z.infer<typeof creation>, 'proxy_config' | 'workspace_secrets'> & {
  readonly proxyConfig: unknown;
  readonly workspaceSecrets: unknown;
};

/** Parses `{id?, listen?, token?, ca?, limits?, proxy_config?, workspace_secrets?}`. */
export function parseSandboxDocument(
  input: unknown,
  config: Guards & Pick<Config, 'limits' | 'hasNamespaces'>,
): Parsed<SandboxDocument> {
  const parsed = parseWith(creation, input);
  if (!parsed.ok) return parsed;
  const { proxy_config: proxyConfig, workspace_secrets: workspaceSecrets, ...given } = parsed.value;
  const tooHigh = limitIssues(given.limits, config);
  if (tooHigh.length > 0) return { ok: false, issues: tooHigh };
  if (typeof given.ca === 'object' && !config.hasNamespaces) return { ok: false, issues: [FOREIGN_CA] };
  // On the main listener a token is the only thing that tells sandboxes apart.
  const wanted = given.token ?? (given.listen ? undefined : GENERATE);
  if (given.listen && wanted === undefined && isExposed(given.listen, config))
    return { ok: false, issues: [EXPOSED] };
  return { ok: true, value: { ...given, token: wanted, proxyConfig, workspaceSecrets } };
}

const change = z.strictObject({ token: token.optional(), limits: limits.optional() });

/** Parses `{token?, limits?}`. */
export function parseSandboxChange(
  input: unknown,
  config: Pick<Config, 'limits'>,
): Parsed<z.infer<typeof change>> {
  const parsed = parseWith(change, input);
  if (!parsed.ok) return parsed;
  const tooHigh = limitIssues(parsed.value.limits ?? {}, config);
  return tooHigh.length > 0 ? { ok: false, issues: tooHigh } : parsed;
}

/** The JSON Schemas of both documents. */
export function sandboxJsonSchemas(): { readonly creation: unknown; readonly change: unknown } {
  return { creation: toJsonSchema(creation), change: toJsonSchema(change) };
}

const EXPOSED: Issue = {
  loc: ['listen'],
  msg:
    'This address is reachable from other machines: send a token, or have the operator set allow_clients or ' +
    'auth: "none"',
  type: 'value_error',
};

const FOREIGN_CA: Issue = {
  loc: ['ca'],
  msg: 'must be "own": only with sandboxes.namespaces does the parent process keep the CA, and send it',
  type: 'value_error',
};

/** A sandbox may have lower limits than the operator's config, never higher ones. */
function limitIssues(given: Partial<SandboxLimits>, config: Pick<Config, 'limits'>): Issue[] {
  return sandboxLimits.flatMap((key): Issue[] => {
    const most = config.limits[key];
    if ((given[key] ?? 0) <= most) return [];
    const msg = `Input must be at most ${most}, the limit of the operator's config`;
    return [{ loc: ['limits', toSnakeCase(key)], msg, type: 'less_than_equal' }];
  });
}
