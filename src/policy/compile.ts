// Authored form + secrets -> Policy. After this, a decision cannot fail: each value is resolved and is a valid field
// value. Takes what parseProxyConfig has accepted, and never opens a secret.
import { createHash } from 'node:crypto';
import { capIssues, type Issue, type Parsed, toLocKey } from '../base/schema.ts';
import { Secret } from '../base/secret.ts';
import { finish, type Steps } from '../base/steps.ts';
import {
  compileDestinations,
  type Destination,
  type DestinationList,
  parseDestination,
} from './match/destination-list.ts';
import {
  headerLengthError,
  headerValueError,
  parseSecretTemplate,
  type Template,
} from './document/header-rules.ts';
import { placeholdersOf } from './document/placeholders.ts';
import { parseHostPattern } from './match/host-pattern.ts';
import { parsePathPattern } from './match/path-pattern.ts';
import {
  type CompiledCallback,
  type CompiledRule,
  createPolicy,
  type InjectedHeader,
  type Policy,
} from './policy.ts';
import {
  type CallbackEntry,
  type HeaderEntry,
  noProxyEntries,
  type ProxyConfig,
  type RuleEntry,
} from './document/proxy-config-schema.ts';

export type SecretLookup = (name: string) => Secret | undefined;
export type Compiled = Parsed<Policy>;

/** Compiles at once. */
export function compileProxyConfig(config: ProxyConfig, secrets: SecretLookup, revision: number): Compiled {
  return finish(compileInSteps(config, secrets, revision));
}

/**
 * Disabled entries have no effect: their secrets need not exist. The `loc` of each issue names the header. The
 * longest step is the index of ten thousand hosts, paths or destinations, which takes about ten milliseconds.
 */
export function* compileInSteps(
  config: ProxyConfig,
  secrets: SecretLookup,
  revision: number,
): Steps<Compiled> {
  const issues: Issue[] = [];
  const rules: CompiledRule[] = [];
  for (const [i, rule] of config.rules.entries()) {
    if (rule.enabled) rules.push(yield* compileRule(rule, i, secrets, issues));
    yield;
  }
  if (issues.length > 0) return { ok: false, issues: capIssues(issues) };
  const excess = excessOf(rules);
  if (excess !== undefined) return { ok: false, issues: [excess] };
  const callbacks: CompiledCallback[] = [];
  for (const [i, callback] of config.callbacks.entries()) {
    if (callback.enabled) callbacks.push(compileCallback(callback, i));
    yield;
  }
  const noProxy = noProxyEntries(config).map(({ text }) => text);
  const { allow_list: allow, deny_list: deny } = config.access_control ?? {};
  const value = yield* createPolicy({
    revision,
    rules,
    callbacks,
    noProxy: yield* compileList(noProxy),
    noProxyEntries: Object.freeze([...new Set(noProxy)]),
    allow: allow && (yield* compileList(allow)),
    deny: deny && (yield* compileList(deny)),
    placeholders: placeholdersOf(config.rules, () => false).variables,
  });
  return { ok: true, value };
}

// Many times what any host accepts in one head. Each value is stored in the several forms that responses are masked for.
const MAX_VALUE_BYTES = 262_144;

// A body is searched for all forms at once, and the cost grows with them. The gate rejects requests to a host whose rules
// exceed this together.
const MAX_SEARCHED_VALUE_BYTES = 32_768;

/** Checked after the secrets are filled in, when the values have their final length, which no message shows. */
function excessOf(rules: readonly CompiledRule[]): Issue | undefined {
  const headers = rules.flatMap((rule) => rule.headers);
  const bytes = headers.reduce((sum, { value, masks }) => sum + bytesOf([value, ...masks]), 0);
  if (bytes > MAX_VALUE_BYTES) {
    const msg = `All header values and their secrets together must have at most ${MAX_VALUE_BYTES} bytes: use fewer or shorter ones`;
    return { loc: ['rules'], msg, type: 'too_long' };
  }
  for (const { index, headers: own, scrubsBodies } of rules) {
    const searched = scrubsBodies ? bytesOf(own.flatMap(({ masks }) => masks)) : 0;
    if (searched <= MAX_SEARCHED_VALUE_BYTES) continue;
    const msg = `With \`scrub: body\` the values of a rule and their secrets together must have at most ${MAX_SEARCHED_VALUE_BYTES} bytes: use fewer or shorter ones`;
    return { loc: ['rules', index, 'headers'], msg, type: 'too_long' };
  }
  return undefined;
}

/** Counts each value once. */
function bytesOf(values: readonly (Secret | string)[]): number {
  return [...new Set(values)].reduce((sum, { length }) => sum + length, 0);
}

/** The policy of a proxy without a proxy_config: everything is tunnelled, nothing is injected. */
export function emptyPolicy(revision: number): Policy {
  const steps = createPolicy({
    revision,
    rules: [],
    callbacks: [],
    noProxy: compileDestinations([]),
    noProxyEntries: [],
    allow: undefined,
    deny: undefined,
    placeholders: {},
  });
  return finish(steps);
}

/** The workspace secrets that the enabled rules of a config name, each once. */
export function secretNamesOf(config: ProxyConfig): readonly string[] {
  const headers = config.rules.flatMap((rule) => (isInjecting(rule) ? rule.headers : []));
  const names = headers.flatMap(({ type, value }) =>
    type === 'workspace_secret' ? namesIn(accepted(parseSecretTemplate(value))) : [],
  );
  return [...new Set(names)];
}

/** A rule that refuses its requests fills in no secret. */
function isInjecting({ enabled, refuse }: RuleEntry): boolean {
  return enabled && refuse === undefined;
}

function namesIn({ parts }: Template): readonly string[] {
  return parts.flatMap((part) => (typeof part === 'string' ? [] : part.secret));
}

function* compileRule(
  entry: RuleEntry,
  index: number,
  secrets: SecretLookup,
  issues: Issue[],
): Steps<CompiledRule> {
  const headers: InjectedHeader[] = [];
  for (const [i, header] of entry.headers.entries()) {
    // What it does not inject is masked all the same, for the other rules of its hosts.
    if (header.type === 'workspace_secret' && !isInjecting(entry)) continue;
    const resolved = resolveHeader(header, secrets);
    if (typeof resolved !== 'string') headers.push(resolved);
    else issues.push({ loc: ['rules', index, 'headers', i, 'value'], msg: resolved, type: 'value_error' });
    // Finding the parts of one value takes some milliseconds, and a rule may have 64 of them.
    yield;
  }
  return Object.freeze({
    index,
    name: entry.name ?? `rules[${index}]`,
    headers: Object.freeze(headers),
    hosts: Object.freeze(entry.match_hosts.map((text) => accepted(parseHostPattern(text)))),
    paths: Object.freeze(entry.match_paths.map((text) => accepted(parsePathPattern(text)))),
    scrubsBodies: entry.scrub === 'body',
    refusal: entry.refuse,
  });
}

function compileCallback(entry: CallbackEntry, index: number): CompiledCallback {
  const requestHeaders = entry.request_headers.map(({ name, value }) => Object.freeze({ name, value }));
  const identity = requestHeaders.map(({ name, value }) => [
    name,
    typeof value === 'string' ? value : value.fingerprint(),
  ]);
  const url = new URL(entry.url).href;
  return Object.freeze({
    index,
    name: entry.name ?? `callbacks[${index}]`,
    id: createHash('sha256')
      .update(JSON.stringify([url, entry.ttl_seconds, entry.match_hosts, identity]))
      .digest('base64url'),
    url,
    requestHeaders: Object.freeze(requestHeaders),
    ttlSeconds: entry.ttl_seconds,
    hosts: Object.freeze(entry.match_hosts.map((text) => accepted(parseHostPattern(text)))),
    scrubsBodies: entry.scrub === 'body',
  });
}

function resolveHeader({ name, type, value }: HeaderEntry, secrets: SecretLookup): InjectedHeader | string {
  if (type === 'opaque') return injected(name, value, [value, ...value.credentials()]);
  return type === 'plaintext' ? injected(name, value, []) : resolveTemplate(name, value, secrets);
}

const ADD_SECRET =
  'add a file of that name to the secrets directory (SALLYPORT_SECRETS_DIR), or PUT it to /v1/workspace_secrets';

function resolveTemplate(name: string, template: string, secrets: SecretLookup): InjectedHeader | string {
  const { parts } = accepted(parseSecretTemplate(template));
  const used = new Map<string, Secret>();
  for (const part of parts) {
    if (typeof part === 'string') continue;
    const secret = secrets(part.secret);
    if (secret === undefined)
      return `The workspace secret ${toLocKey(part.secret)} does not exist: ${ADD_SECRET}`;
    if (secret.length === 0) return `The workspace secret ${part.secret} is empty; give it a value first`;
    used.set(part.secret, secret);
  }
  const pieces = parts.flatMap((part) => (typeof part === 'string' ? part : (used.get(part.secret) ?? [])));
  // Checked before anything is joined: a template may name a long secret thousands of times.
  const tooLong = headerLengthError(pieces.reduce((sum, { length }) => sum + length, 0));
  if (tooLong !== undefined) return `${NOT_A_VALUE} ${tooLong}`;
  const value = Secret.join(pieces);
  const error = valueError(value);
  if (error !== undefined) return `${NOT_A_VALUE} ${error}`;
  const whole = parts.length === 1 ? [value] : [...used.values(), value];
  // A secret may hold its scheme, or the base64 of `Basic`; the literals of a template can be read by the tenant.
  const literals = parts.filter((part) => typeof part === 'string');
  return injected(
    name,
    value,
    Secret.distinct([...whole, ...whole.flatMap((secret) => secret.credentials(literals))]),
  );
}

const NOT_A_VALUE = 'With its secret filled in, this is not a valid header value.';

function valueError(secret: Secret): string | undefined {
  let error: string | undefined;
  secret.satisfies((value) => {
    error = headerValueError(value);
    return error === undefined;
  });
  return error;
}

function injected(name: string, value: Secret | string, masks: readonly Secret[]): InjectedHeader {
  return Object.freeze({ name, value, masks: Object.freeze(masks) });
}

const ENTRIES_A_STEP = 200;

function* compileList(texts: readonly string[]): Steps<DestinationList> {
  const entries: Destination[] = [];
  for (const [i, text] of texts.entries()) {
    if (i % ENTRIES_A_STEP === 0) yield;
    entries.push(accepted(parseDestination(text)));
  }
  yield;
  return compileDestinations(entries);
}

/** What parseProxyConfig accepted parses again. A string here means that the config did not come from it. */
function accepted<T extends object>(parsed: T | string): T {
  if (typeof parsed === 'string') throw new Error(`not a parsed proxy_config: ${parsed}`);
  return parsed;
}
