// What the admin API takes to make or change a sandbox: unknown input in, a typed value or every issue at once out.
// The proxy_config and the secrets inside are read elsewhere.
import { type ListenAddress, parseListenAddress } from '../../base/listen-address.ts';
import { isSandboxId } from '../../base/sandbox-id.ts';
import { type Issue, parseWith, z } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import { parseAddress } from '../../policy/authority/address.ts';
import type { Config } from '../config.ts';
import { type Guards, isExposed } from '../exposure.ts';
import type { SandboxLimits } from './sandbox.ts';
import { MIN_TOKEN_CHARS } from '../secret-files.ts';

/** `made`: a token is to be made here and told once. */
export type WantedToken = Secret | 'made' | undefined;

export type SandboxDocument = {
  /** Undefined: one is made. */
  readonly id: string | undefined;
  readonly listen: ListenAddress | undefined;
  readonly token: WantedToken;
  readonly limits: Partial<SandboxLimits>;
  readonly proxyConfig: unknown;
  readonly workspaceSecrets: unknown;
};

type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** Reads `{id?, listen?, token?, limits?, proxy_config?, workspace_secrets?}`. */
export function parseSandboxDocument(
  input: unknown,
  config: Guards & Pick<Config, 'limits'>,
): Parsed<SandboxDocument> {
  const parsed = parseWith(creation, input);
  if (!parsed.ok) return parsed;
  const beyond = beyondOperators(parsed.value.limits, config);
  if (beyond.length > 0) return { ok: false, issues: beyond };
  const { id, listen: text, token, limits, proxy_config: proxyConfig, workspace_secrets } = parsed.value;
  // The schema let through what parses.
  const listen = text === undefined ? undefined : (parseListenAddress(text) as ListenAddress);
  // On the main listener a token is all that tells sandboxes apart.
  const wanted = token === undefined && listen === undefined ? 'made' : toWantedToken(token);
  if (listen && wanted === undefined && isExposed(listen, config)) return { ok: false, issues: [EXPOSED] };
  const value = { id, listen, token: wanted, limits: toLimits(limits), proxyConfig };
  return { ok: true, value: { ...value, workspaceSecrets: workspace_secrets } };
}

export type SandboxChange = {
  readonly token: WantedToken;
  /** Undefined: as they are. */
  readonly limits: Partial<SandboxLimits> | undefined;
};

/** Reads `{token?, limits?}`. */
export function parseSandboxChange(input: unknown, config: Pick<Config, 'limits'>): Parsed<SandboxChange> {
  const parsed = parseWith(change, input);
  if (!parsed.ok) return parsed;
  const beyond = beyondOperators(parsed.value.limits ?? {}, config);
  if (beyond.length > 0) return { ok: false, issues: beyond };
  const { token, limits } = parsed.value;
  return { ok: true, value: { token: toWantedToken(token), limits: limits && toLimits(limits) } };
}

const id = z.string().refine(isSandboxId, {
  message: 'should be of lower-case letters, digits and inner hyphens, at most 63',
});
const listen = z.string().superRefine((text, context) => {
  const parsed = parseListenAddress(text);
  if (typeof parsed === 'string') context.addIssue({ code: 'custom', message: parsed });
  // A name would be looked up while every other writer waits.
  else if (parsed.host !== 'localhost' && !parseAddress(parsed.host))
    context.addIssue({ code: 'custom', message: 'should be an address or localhost, and a port' });
});
const MADE = 'generate';
// Of what fits into the user name or password of a URL as it stands.
const token = z
  .string()
  .refine(
    (text) => text === MADE || (text.length >= MIN_TOKEN_CHARS && /^[A-Za-z0-9._~-]{1,256}$/.test(text)),
    {
      message: `should be "${MADE}", or ${MIN_TOKEN_CHARS} to 256 letters, digits, ".", "_", "~" and "-"`,
    },
  );
const limit = z.int().min(1).max(1_000_000).optional();
const limits = z.strictObject({
  max_connections: limit,
  max_lookups: limit,
  max_idle_upstream: limit,
  max_idle_per_host: limit,
});

const creation = z.strictObject({
  id: id.optional(),
  listen: listen.optional(),
  token: token.optional(),
  limits: limits.default({}),
  proxy_config: z.unknown().optional(),
  workspace_secrets: z.unknown().optional(),
});

const change = z.strictObject({ token: token.optional(), limits: limits.optional() });

const EXPOSED: Issue = {
  loc: ['listen'],
  msg: 'Others can reach this address: give a token, or have the operator set allow_clients or auth: "none"',
  type: 'value_error',
};

/** A sandbox may have less than what the operator's config allows, never more. */
function beyondOperators(given: z.infer<typeof limits>, config: Pick<Config, 'limits'>): Issue[] {
  const most = showLimits(config.limits);
  return Object.entries(given).flatMap(([key, value]): Issue[] => {
    const limit = most[key] ?? 0;
    if (value === undefined || value <= limit) return [];
    const msg = `Input should be at most ${limit}, which the operator's config allows`;
    return [{ loc: ['limits', key], msg, type: 'less_than_equal' }];
  });
}

function toWantedToken(text: string | undefined): WantedToken {
  if (text === undefined) return undefined;
  return text === MADE ? 'made' : new Secret(text);
}

function toLimits(given: z.infer<typeof limits>): Partial<SandboxLimits> {
  const named = {
    maxConnections: given.max_connections,
    maxLookups: given.max_lookups,
    maxIdleUpstream: given.max_idle_upstream,
    maxIdlePerHost: given.max_idle_per_host,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}

/** The limits in the words of their authors. */
export function showLimits(given: SandboxLimits): Readonly<Record<string, number>> {
  return {
    max_connections: given.maxConnections,
    max_lookups: given.maxLookups,
    max_idle_upstream: given.maxIdleUpstream,
    max_idle_per_host: given.maxIdlePerHost,
  };
}
