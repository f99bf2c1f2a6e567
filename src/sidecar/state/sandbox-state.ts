// What is kept of a sandbox across restarts: an immutable value, and its text for the sealed store. One of the files
// that open secrets, because what is sealed must be what was given. It knows nothing of files and keys.
import { randomBytes } from 'node:crypto';
import { parseJsonDocument } from '../../base/json-document.ts';
import type { ListenAddress } from '../../base/listen-address.ts';
import { type Issue, parseWith, z } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import { toProxyConfigDocument } from '../../policy/document/proxy-config-document.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../policy/document/proxy-config.ts';
import type { SandboxLimits } from '../sandboxes/sandbox.ts';

export type SandboxState = {
  readonly id: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** Its own listener with the port that was opened; undefined: clients come by the main one and show the token. */
  readonly listen: ListenAddress | undefined;
  readonly token: Secret | undefined;
  readonly limits: Partial<SandboxLimits>;
  /** 0: no proxy_config was ever applied. */
  readonly revision: number;
  /** An entity tag (RFC 9110 §8.8.3); its second part is chance, so that no two documents share one. */
  readonly etag: string;
  readonly proxyConfig: ProxyConfig | undefined;
  /** The text of a document that this start refused: kept in its place, since without it the next start would open. */
  readonly refused?: Secret | undefined;
  /** The values that the revision in force was made of, whatever became of them since. */
  readonly used: ReadonlyMap<string, Secret>;
  readonly secrets: ReadonlyMap<string, Secret>;
};

export function newSandboxState(
  id: string,
  given: Partial<Pick<SandboxState, 'listen' | 'token' | 'limits' | 'secrets'>> = {},
): SandboxState {
  const { listen, token, limits = {}, secrets = new Map<string, Secret>() } = given;
  const createdAt = new Date().toISOString();
  const used = new Map<string, Secret>();
  const revision = 0;
  const etag = newEtag(revision);
  return { id, createdAt, listen, token, limits, revision, etag, proxyConfig: undefined, used, secrets };
}

export function newEtag(revision: number): string {
  return `"${revision}-${randomBytes(9).toString('base64url')}"`;
}

/** The text to be sealed. It holds every value in clear. */
export function encodeSandboxState(state: SandboxState): string {
  const { proxyConfig, refused, token, used, secrets, ...rest } = state;
  return JSON.stringify({
    version: VERSION,
    ...rest,
    ...(token && { token: token.reveal() }),
    ...(refused && { proxyConfig: JSON.parse(refused.reveal()) }),
    ...(proxyConfig && {
      proxyConfig: toProxyConfigDocument(proxyConfig, (value) => ({ value: value.reveal() })),
    }),
    used: revealed(used),
    secrets: revealed(secrets),
  });
}

/** What was kept. `fault`: why its proxy_config cannot be used any more. */
export type DecodedState = { readonly state: SandboxState; readonly error: string | undefined };

/** Reads what encodeSandboxState wrote; a sentence if that cannot be. */
export function decodeSandboxState(
  text: string,
  options: { readonly allowWildcards: readonly string[] },
): DecodedState | string {
  const document = parseJsonDocument(text);
  const parsed = document.ok ? parseWith(schema, document.value) : undefined;
  if (!parsed?.ok) return 'it was written by another version of Sallyport';
  const { version: _, proxyConfig, token, listen, used, secrets, limits, ...rest } = parsed.value;
  const config = proxyConfig === undefined ? undefined : parseProxyConfig(proxyConfig, options);
  const state = {
    ...rest,
    listen,
    // exactOptionalPropertyTypes: an absent limit is absent, not undefined.
    limits: Object.fromEntries(Object.entries(limits)),
    token: token === undefined ? undefined : new Secret(token),
    proxyConfig: config?.ok ? config.value : undefined,
    refused: config?.ok === false ? new Secret(JSON.stringify(proxyConfig)) : undefined,
    used: sealed(used),
    secrets: sealed(secrets),
  };
  // What was sound once may be refused by the rules of now, such as a wildcard that the operator has withdrawn.
  return { state, error: config && !config.ok ? describe(config.issues) : undefined };
}

/** The first of the issues, for a message of one line. */
export function describe([first, ...more]: readonly Issue[]): string {
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  return first ? `${first.loc.join('.')}: ${first.msg}${rest}` : 'no reason is known';
}

const VERSION = 1;

// Pairs, since a secret may be called __proto__, which not every reader of objects keeps.
const values = z.array(z.tuple([z.string(), z.string()]));
const limit = z.int().min(1).optional();

const schema = z.strictObject({
  version: z.literal(VERSION),
  id: z.string(),
  createdAt: z.string(),
  listen: z.strictObject({ host: z.string(), port: z.int() }).optional(),
  token: z.string().optional(),
  limits: z.strictObject({
    maxConnections: limit,
    maxLookups: limit,
    maxIdleUpstream: limit,
    maxIdlePerHost: limit,
  }),
  revision: z.int().min(0),
  etag: z.string(),
  proxyConfig: z.unknown().optional(),
  used: values,
  secrets: values,
});

function revealed(secrets: ReadonlyMap<string, Secret>): [name: string, value: string][] {
  return [...secrets].map(([name, value]) => [name, value.reveal()]);
}

function sealed(pairs: readonly (readonly [name: string, value: string])[]): ReadonlyMap<string, Secret> {
  return new Map(pairs.map(([name, value]) => [name, new Secret(value)]));
}
