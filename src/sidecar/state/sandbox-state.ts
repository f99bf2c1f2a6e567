// What is stored of a sandbox across restarts: an immutable value, and its text for the sealed store. One of the files
// that may reveal secrets: it writes them into the text that is sealed, and passes the key of a CA to what signs with it.
import { randomBytes } from 'node:crypto';
import { parseJsonDocument } from '../../base/json/json-document.ts';
import { type Issue, parseWith, z } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import { toProxyConfigDocument } from '../../policy/document/proxy-config-document.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../policy/document/proxy-config.ts';
import { type CertificateAuthority, parseCertificateAuthority } from '../../tls/certificate-authority.ts';
import { sandboxLimits } from '../sandboxes/sandbox.ts';

const secret = z.string().transform((text) => new Secret(text));
// Pairs, because a secret may be named __proto__, which not every reader of objects preserves.
const secrets = z
  .array(z.tuple([z.string(), secret]))
  .transform((pairs): ReadonlyMap<string, Secret> => new Map(pairs));

const VERSION = 1;
const schema = z.strictObject({
  version: z.literal(VERSION),
  id: z.string(),
  /** ISO 8601. */
  createdAt: z.string(),
  /** Its own listener, with the port that was opened; undefined: its clients use the main listener and a token. */
  listen: z.strictObject({ host: z.string(), port: z.int() }).optional(),
  token: secret.optional(),
  /** Its own CA; undefined: that of the process. */
  ca: z.strictObject({ certificatePem: z.string(), key: secret }).optional(),
  limits: z.partialRecord(z.enum(sandboxLimits), z.int().min(1)),
  /** 0: no proxy_config was ever applied. */
  revision: z.int().min(0),
  /** An entity tag (RFC 9110 §8.8.3); its second part is random, so that no two documents share one. */
  etag: z.string(),
  proxyConfig: z.unknown().optional(),
  /** The values that the active revision was compiled with, even if they were changed since. */
  used: secrets,
  secrets,
});

export type SandboxState = Readonly<Omit<z.infer<typeof schema>, 'version' | 'proxyConfig'>> & {
  readonly proxyConfig?: ProxyConfig | undefined;
  /** The text of a document that this start rejected. It stays stored: without it the next start would have no rules. */
  readonly rejected?: Secret | undefined;
};

/** The CA of a sandbox that has its own, as it is stored. */
export type SandboxAuthority = NonNullable<SandboxState['ca']>;

/** The issues are relative to the document that creates a sandbox. */
export function loadAuthority({
  certificatePem,
  key,
}: SandboxAuthority): CertificateAuthority | readonly Issue[] {
  const loaded = parseCertificateAuthority({ certificatePem, privateKeyPem: key.reveal() });
  if (!('message' in loaded)) return loaded;
  const field = loaded.part === 'key' ? 'private_key_pem' : 'certificate_pem';
  return [{ loc: ['ca', field], msg: loaded.message, type: 'value_error' }];
}

export function newSandboxState(
  id: string,
  given: Partial<Pick<SandboxState, 'listen' | 'token' | 'limits' | 'secrets' | 'ca'>> = {},
): SandboxState {
  const createdAt = new Date().toISOString();
  const none = { revision: 0, etag: newEtag(0), used: new Map<string, Secret>() };
  return { id, createdAt, limits: {}, secrets: new Map(), ...given, ...none };
}

export function newEtag(revision: number): string {
  return `"${revision}-${randomBytes(9).toString('base64url')}"`;
}

/** The text to be sealed. It holds every value in plaintext. */
export function encodeSandboxState(state: SandboxState): string {
  const { proxyConfig, rejected, token, ca, used, secrets, ...rest } = state;
  const document = proxyConfig && toProxyConfigDocument(proxyConfig, (value) => ({ value: value.reveal() }));
  return JSON.stringify({
    version: VERSION,
    ...rest,
    token: token?.reveal(),
    ca: ca && { ...ca, key: ca.key.reveal() },
    proxyConfig: rejected ? JSON.parse(rejected.reveal()) : document,
    used: revealed(used),
    secrets: revealed(secrets),
  });
}

function revealed(values: ReadonlyMap<string, Secret>): [name: string, value: string][] {
  return [...values].map(([name, value]) => [name, value.reveal()]);
}

/** `error`: why the stored proxy_config cannot be used any more. */
export type DecodedState = { readonly state: SandboxState; readonly error: string | undefined };

/** Reads what encodeSandboxState wrote; a sentence if it cannot be read. */
export function decodeSandboxState(
  text: string,
  options: { readonly allowWildcards: readonly string[]; readonly reservedHost?: string },
): DecodedState | string {
  const document = parseJsonDocument(text);
  const parsed = document.ok ? parseWith(schema, document.value) : undefined;
  if (!parsed?.ok) return 'it was written by another version of Sallyport';
  const { version: _, proxyConfig, ...rest } = parsed.value;
  const config = proxyConfig === undefined ? undefined : parseProxyConfig(proxyConfig, options);
  const state = {
    ...rest,
    proxyConfig: config?.ok ? config.value : undefined,
    rejected: config?.ok === false ? new Secret(JSON.stringify(proxyConfig)) : undefined,
  };
  // A document that was valid may be rejected now, for example because the operator no longer allows its wildcard.
  return { state, error: config?.ok === false ? describeIssues(config.issues) : undefined };
}

/** The first of the issues, for a message of one line. */
export function describeIssues([first, ...more]: readonly Issue[]): string {
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  return first ? `${first.loc.join('.')}: ${first.msg}${rest}` : 'the reason is unknown';
}
