// The AUTHORED form of a proxy_config, in the words of its authors: the shape, the limits, and what each field
// may hold by itself. What one entry means for another is asked in proxy-config-conflicts.ts. An opaque value leaves
// here as a Secret: nothing behind the schema ever holds it in clear.
import { type Loc, z } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import { parseAuthority } from '../authority/authority.ts';
import { parseDestination } from '../match/destination-list.ts';
import { foldHeaderName, headerNameError, headerValueError, requestHeaderNameError } from './header-rules.ts';
import { parseHostPattern } from '../match/host-pattern.ts';
import { parsePathPattern } from '../match/path-pattern.ts';
import { parseSecretTemplate } from './secret-template.ts';

export type ProxyConfig = {
  readonly rules: readonly RuleEntry[];
  readonly callbacks: readonly CallbackEntry[];
  readonly no_proxy: readonly string[];
  readonly access_control?: AccessControl | undefined;
};

export type RuleEntry = {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly enabled: boolean;
  readonly env_vars: Readonly<Record<string, string>>;
  readonly match_hosts: readonly string[];
  readonly match_paths: readonly string[];
  readonly headers: readonly HeaderEntry[];
  readonly no_proxy: readonly string[];
  readonly scrub: Scrub;
};

/** Where the secrets of an entry are masked in what its hosts answer. */
export type Scrub = 'head' | 'body';

export type HeaderEntry = TextEntry<'workspace_secret' | 'plaintext'> | OpaqueEntry;
export type RequestHeaderEntry = TextEntry<'plaintext'> | OpaqueEntry;
export type OpaqueEntry = { readonly name: string; readonly type: 'opaque'; readonly value: Secret };
type TextEntry<T> = { readonly name: string; readonly type: T; readonly value: string };

export type CallbackEntry = {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly enabled: boolean;
  readonly match_hosts: readonly string[];
  readonly url: string;
  readonly request_headers: readonly RequestHeaderEntry[];
  readonly ttl_seconds: number;
  readonly scrub: Scrub;
};

export type AccessControl = {
  readonly allow_list?: readonly string[] | undefined;
  readonly deny_list?: readonly string[] | undefined;
};

/** The entries in force: those beside `rules`, and those inside enabled rules, which are read as if they stood there. */
export function noProxyEntries(config: ProxyConfig): readonly { readonly text: string; readonly loc: Loc }[] {
  const at = (entries: readonly string[], loc: Loc): { text: string; loc: Loc }[] =>
    entries.map((text, i) => ({ text, loc: [...loc, 'no_proxy', i] }));
  const inside = config.rules.flatMap((rule, i) => (rule.enabled ? at(rule.no_proxy, ['rules', i]) : []));
  return [...at(config.no_proxy, []), ...inside];
}

const hostPattern = text(300, (value) => errorOf(parseHostPattern(value)));
const destination = text(300, (value) => errorOf(parseDestination(value)));
const pathPattern = text(300, (value) => errorOf(parsePathPattern(value)));
const headerValue = text(8192, headerValueError);
const secretTemplate = text(8192, templateError);
const callbackUrl = text(2048, urlError);
const scrub = z
  .enum(['head', 'body'])
  .default('head')
  .describe('`body`: mask secrets in the bodies of these hosts too');
const label = text(128, labelError);
const description = z.string().max(2000).optional();

const hosts = z
  .array(hostPattern)
  .min(1)
  .max(1000)
  .describe('Hosts: api.example.com, *.example.com, [2001:db8::7]:443');
const destinations = z.array(destination).max(1000);

const workspaceSecret = z
  .literal('workspace_secret')
  .describe('`{NAME}` in the value stands for a workspace secret');
const plaintext = z.literal('plaintext').describe('Stored and returned as written');
const opaque = z.literal('opaque').describe('Write-only: sealed at rest and never returned');

const injectedName = text(256, headerNameError);
const requestName = text(256, requestHeaderNameError);
const opaqueValue = headerValue.transform(toSecret);
const opaqueValueOrNone = text(8192, (value) => (value === '' ? undefined : headerValueError(value)))
  .default('')
  .transform(toSecret);

const accessControl: z.ZodType<AccessControl> = z
  .strictObject({ allow_list: destinations.optional(), deny_list: destinations.optional() })
  .refine((lists) => (lists.allow_list === undefined) !== (lists.deny_list === undefined), {
    error: 'Give either allow_list or deny_list',
  });

/** The document, and its parts for checking one entry when another is at fault. */
export type ProxyConfigSchema = {
  readonly document: z.ZodType<ProxyConfig>;
  readonly rule: z.ZodType<RuleEntry>;
  readonly callback: z.ZodType<CallbackEntry>;
  readonly accessControl: z.ZodType<AccessControl>;
};

/** For a document that says everything itself, such as a file. */
export const wholeSchema: ProxyConfigSchema = createSchema(false);

/**
 * For a document that replaces another: an opaque value that is left out is an empty Secret, to be filled in.
 * Made when first asked for, since many a process never reads an update.
 */
export function updateSchema(): ProxyConfigSchema {
  updating ??= createSchema(true);
  return updating;
}

let updating: ProxyConfigSchema | undefined;

function createSchema(mayLeaveOut: boolean): ProxyConfigSchema {
  const rule = ruleSchema(mayLeaveOut);
  const callback = callbackSchema(mayLeaveOut);
  const document = z.strictObject({
    rules: z
      .array(rule)
      .max(1000)
      .default([])
      .describe('Static headers; the first rule whose host and path match wins'),
    callbacks: z
      .array(callback)
      .max(100)
      .default([])
      .describe('Headers asked from an endpoint, for hosts without a rule'),
    no_proxy: destinations.default([]).describe('Destinations that are never intercepted'),
    access_control: accessControl.optional().describe('Which destinations may be reached at all'),
  });
  return { document, rule, callback, accessControl };
}

function ruleSchema(mayLeaveOut: boolean): z.ZodType<RuleEntry> {
  const header = z.discriminatedUnion(
    'type',
    [
      z.strictObject({ name: injectedName, type: workspaceSecret, value: secretTemplate }),
      z.strictObject({ name: injectedName, type: plaintext, value: headerValue }),
      opaqueHeader(injectedName, mayLeaveOut),
    ],
    { error: "Input should be 'workspace_secret', 'plaintext' or 'opaque'" },
  );
  return z.strictObject({
    name: label.optional().describe('How records and messages call the rule'),
    description,
    enabled: z.boolean().default(true).describe('A disabled rule counts for nothing'),
    env_vars: z.record(z.string(), z.string().max(4096)).superRefine(refineEnvVars).default({}),
    match_hosts: hosts,
    match_paths: z
      .array(pathPattern)
      .max(100)
      .default([])
      .describe('Paths: /v1/*, /v1*, /repos/*/contents; none: every path'),
    headers: z.array(header).min(1).max(64).superRefine(refineUniqueNames),
    no_proxy: destinations.default([]).describe('Read as if it stood beside `rules`'),
    scrub,
    type: notSupported('Rules of a type (aws, gcp) are not supported yet; a rule sets headers'),
  });
}

function callbackSchema(mayLeaveOut: boolean): z.ZodType<CallbackEntry> {
  const header = z.discriminatedUnion(
    'type',
    [
      z.strictObject({ name: requestName, type: plaintext, value: headerValue }),
      opaqueHeader(requestName, mayLeaveOut),
    ],
    { error: "Input should be 'plaintext' or 'opaque'; a workspace_secret is not sent to a callback" },
  );
  return z.strictObject({
    name: label.optional().describe('How records and messages call the callback'),
    description,
    enabled: z.boolean().default(true).describe('A disabled callback counts for nothing'),
    match_hosts: hosts,
    url: callbackUrl.describe('Where to POST {host, port}; http:// or https://'),
    request_headers: z.array(header).max(64).superRefine(refineUniqueNames).default([]),
    ttl_seconds: z.int().min(60).max(3600).describe('How long an answer is kept'),
    scrub,
    full_request: notSupported('full_request is not supported yet; a callback gets {host, port}'),
  });
}

/** What is shown of an opaque header may be sent back as it is, so `is_set` is read, and says nothing. */
function opaqueHeader(name: z.ZodType<string>, mayLeaveOut: boolean) {
  return z
    .strictObject({
      name,
      type: opaque,
      value: mayLeaveOut ? opaqueValueOrNone : opaqueValue,
      is_set: z.boolean().optional().describe('What reads show in place of the value; not needed in writes'),
    })
    .superRefine(({ value, is_set: isSet }, context) => {
      if (mayLeaveOut && isSet === false && value.length === 0)
        context.addIssue({ code: 'custom', path: ['value'], message: NOT_SET });
    })
    .transform(({ name: written, type, value }): OpaqueEntry => ({ name: written, type, value }));
}

const NOT_SET = 'A header whose is_set is false should be given a value, or be left out';

function toSecret(value: string): Secret {
  return new Secret(value);
}

/** A string of bounded length with a check of its own; the check answers with a sentence. */
function text(maxLength: number, error: (value: string) => string | undefined): z.ZodType<string> {
  return z
    .string()
    .max(maxLength, { abort: true })
    .superRefine((value, context) => {
      const message = error(value);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    });
}

function notSupported(error: string): z.ZodType<undefined> {
  return z.never({ error }).optional();
}

function errorOf(parsed: object | string): string | undefined {
  return typeof parsed === 'string' ? parsed : undefined;
}

function labelError(value: string): string | undefined {
  if (value.trim() === '') return 'A name should not be empty';
  // Names stand in records and on terminals. JSON leaves line separators as they are, and viewers end a line there; what
  // turns the direction of text shows another name than it is.
  return /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(value)
    ? 'A name should hold no control character'
    : undefined;
}

function templateError(value: string): string | undefined {
  const template = parseSecretTemplate(value);
  if (typeof template === 'string') return template;
  return headerValueError(template.parts.map((part) => (typeof part === 'string' ? part : 'x')).join(''));
}

function urlError(value: string): string | undefined {
  // What stands behind the authority begins with a delimiter, so that no text can be split in two ways.
  const [, scheme, authority] = /^(https?):\/\/([^/?#\\]*)(?:[/?#][\x21-\x5b\x5d-\x7e]*)?$/.exec(value) ?? [];
  if (scheme === undefined || authority === undefined)
    return 'A callback URL should begin with http:// or https:// and hold visible ASCII only, without a backslash';
  if (value.includes('#')) return 'A callback URL should have no fragment';
  if (authority.includes('@'))
    return 'A callback URL should hold no user name or password; use request_headers';
  // The URL parser also reads 0x7f.1 and 127.1 as addresses; here a host has one spelling.
  const host = parseAuthority(authority, scheme === 'http' ? 80 : 443);
  return typeof host === 'string' || !URL.canParse(value)
    ? 'A callback URL should name a host or address in its plain spelling, and a port from 1 to 65535, if any'
    : undefined;
}

function refineEnvVars(vars: Readonly<Record<string, string>>, context: z.RefinementCtx): void {
  const names = Object.keys(vars);
  if (names.length > 100)
    context.addIssue({ code: 'custom', message: 'Input should have at most 100 entries' });
  for (const name of names)
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name) || vars[name]?.includes('\0'))
      context.addIssue({ code: 'custom', path: [name], message: ENV_VAR });
}

const ENV_VAR = 'A variable should have a name of letters, digits and underscores, and a value without NUL';

function refineUniqueNames(headers: readonly HeaderEntry[], context: z.RefinementCtx): void {
  const seen = new Set<string>();
  for (const [i, { name }] of headers.entries()) {
    const folded = foldHeaderName(name);
    if (seen.has(folded))
      context.addIssue({
        code: 'custom',
        path: [i, 'name'],
        message: 'This header is set twice; keep one of them',
      });
    seen.add(folded);
  }
}
