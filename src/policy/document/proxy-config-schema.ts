// The authored form of a proxy_config: its shape, its limits, and what each field may hold by itself. What one entry
// means for another is checked in proxy-config-conflicts.ts. An opaque value leaves this file as a Secret, so nothing
// behind the schema holds it in plaintext.
import { type Loc, z } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import { parseAuthority } from '../authority/authority.ts';
import { parseDestination } from '../match/destination-list.ts';
import {
  foldHeaderName,
  headerNameError,
  headerValueError,
  parseSecretTemplate,
  requestHeaderNameError,
} from './header-rules.ts';
import { parseHostPattern } from '../match/host-pattern.ts';
import { parsePathPattern } from '../match/path-pattern.ts';

/** What an author may write, parsed and with its defaults filled in. */
export type ProxyConfig = Immutable<z.infer<ProxyConfigSchema['document']>>;
export type RuleEntry = ProxyConfig['rules'][number];
export type CallbackEntry = ProxyConfig['callbacks'][number];
export type HeaderEntry = RuleEntry['headers'][number];
export type OpaqueEntry = Extract<HeaderEntry, { type: 'opaque' }>;
/** Where the secrets of an entry are masked in the responses of its hosts. */
export type Scrub = RuleEntry['scrub'];

type Immutable<T> = T extends Secret ? T : { readonly [K in keyof T]: Immutable<T[K]> };

/** The active entries: those beside `rules`, and those inside enabled rules, which mean the same. */
export function noProxyEntries(config: ProxyConfig): readonly { readonly text: string; readonly loc: Loc }[] {
  const at = (entries: readonly string[], loc: Loc) =>
    entries.map((text, i) => ({ text, loc: [...loc, 'no_proxy', i] }));
  const inside = config.rules.flatMap((rule, i) => (rule.enabled ? at(rule.no_proxy, ['rules', i]) : []));
  return [...at(config.no_proxy, []), ...inside];
}

const hostPattern = parsedText(parseHostPattern);
const destination = parsedText(parseDestination);
const pathPattern = parsedText(parsePathPattern);
const headerValue = text(8192, headerValueError);
const secretTemplate = text(8192, templateError);
const callbackUrl = text(2048, urlError);
const scrub = z
  .enum(['head', 'body'])
  .default('head')
  .describe('`body`: mask secrets in the bodies of these hosts too');
const label = text(128, labelError);
const description = z.string().max(2000).optional();
/** Of the field `refuse`. */
export const MAX_REFUSE_CHARS = 1000;

const hosts = z
  .array(hostPattern)
  .min(1)
  .max(1000)
  .describe('Hosts: api.example.com, *.example.com, [2001:db8::7]:443');
const destinations = z.array(destination).max(1000);

const workspaceSecret = z
  .literal('workspace_secret')
  .describe('`{NAME}` in the value is replaced with a workspace secret');
const plaintext = z.literal('plaintext').describe('Stored and returned as written');
const opaque = z.literal('opaque').describe('Write-only: encrypted at rest and never returned');

const injectedName = text(256, headerNameError);
const requestName = text(256, requestHeaderNameError);
const opaqueValue = headerValue.transform(toSecret);
const opaqueValueOrNone = text(8192, (value) => (value === '' ? undefined : headerValueError(value)))
  .default('')
  .transform(toSecret);

const accessControl = z
  .strictObject({ allow_list: destinations.optional(), deny_list: destinations.optional() })
  .refine((lists) => (lists.allow_list === undefined) !== (lists.deny_list === undefined), {
    error: 'Give either allow_list or deny_list',
  });

/** The document, and its parts for checking one entry when another is invalid. */
export type ProxyConfigSchema = ReturnType<typeof createSchema>;

/** For a document that is complete by itself, such as a file. */
export const wholeSchema: ProxyConfigSchema = createSchema(false);

/**
 * For a document that replaces another: an omitted opaque value is an empty Secret, to be filled in.
 * Created when first used, since many processes never read an update.
 */
export function updateSchema(): ProxyConfigSchema {
  updating ??= createSchema(true);
  return updating;
}

let updating: ProxyConfigSchema | undefined;

function createSchema(mayOmitValues: boolean) {
  const rule = ruleSchema(mayOmitValues);
  const callback = callbackSchema(mayOmitValues);
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
      .describe('Headers requested from an endpoint, for hosts without a rule'),
    no_proxy: destinations.default([]).describe('Destinations that are never intercepted'),
    access_control: accessControl.optional().describe('Which destinations may be reached at all'),
  });
  return { document, rule, callback, accessControl };
}

function ruleSchema(mayOmitValues: boolean) {
  const header = z.discriminatedUnion(
    'type',
    [
      z.strictObject({ name: injectedName, type: workspaceSecret, value: secretTemplate }),
      z.strictObject({ name: injectedName, type: plaintext, value: headerValue }),
      opaqueHeader(injectedName, mayOmitValues),
    ],
    { error: "Input must be 'workspace_secret', 'plaintext' or 'opaque'" },
  );
  return z.strictObject({
    name: label.optional().describe('The name of the rule in records and messages'),
    description,
    enabled: z.boolean().default(true).describe('A disabled rule has no effect'),
    env_vars: z.record(z.string(), z.string().max(4096)).superRefine(refineEnvVars).default({}),
    match_hosts: hosts,
    match_paths: z
      .array(pathPattern)
      .max(100)
      .default([])
      .describe('Paths: /v1/*, /v1*, /repos/*/contents; none: every path'),
    headers: z.array(header).min(1).max(64).superRefine(refineUniqueNames),
    no_proxy: destinations.default([]).describe('Same as no_proxy beside `rules`'),
    scrub,
    refuse: text(MAX_REFUSE_CHARS, reasonError)
      .optional()
      .describe('Why requests that the rule decides are refused; its workspace secrets need not exist'),
    type: notSupported('Rules with a type (aws, gcp) are not supported yet; a rule sets headers'),
  });
}

function callbackSchema(mayOmitValues: boolean) {
  const header = z.discriminatedUnion(
    'type',
    [
      z.strictObject({ name: requestName, type: plaintext, value: headerValue }),
      opaqueHeader(requestName, mayOmitValues),
    ],
    { error: "Input must be 'plaintext' or 'opaque'; a workspace_secret is not sent to a callback" },
  );
  return z.strictObject({
    name: label.optional().describe('The name of the callback in records and messages'),
    description,
    enabled: z.boolean().default(true).describe('A disabled callback has no effect'),
    match_hosts: hosts,
    url: callbackUrl.describe('Where to POST {host, port}; http:// or https://'),
    request_headers: z.array(header).max(64).superRefine(refineUniqueNames).default([]),
    ttl_seconds: z.int().min(60).max(3600).describe('How long a response is cached'),
    scrub,
    full_request: notSupported('full_request is not supported yet; a callback receives {host, port}'),
  });
}

/** Accepts `is_set`, which reads show in place of the value, so that what was read may be sent back unchanged. */
function opaqueHeader(name: z.ZodString, mayOmitValue: boolean) {
  return z
    .strictObject({
      name,
      type: opaque,
      value: mayOmitValue ? opaqueValueOrNone : opaqueValue,
      is_set: z.boolean().optional().describe('Shown by reads in place of the value; not needed in writes'),
    })
    .superRefine(({ value, is_set: isSet }, context) => {
      if (mayOmitValue && isSet === false && value.length === 0)
        context.addIssue({ code: 'custom', path: ['value'], message: NOT_SET });
    })
    .transform(({ name: written, type, value }) => ({ name: written, type, value }));
}

const NOT_SET = 'A header whose is_set is false must have a value; give one, or remove the header';

function toSecret(value: string): Secret {
  return new Secret(value);
}

/** A string of bounded length with a check of its own, which returns what is wrong as a sentence. */
function text(maxLength: number, error: (value: string) => string | undefined): z.ZodString {
  return z
    .string()
    .max(maxLength, { abort: true })
    .superRefine((value, context) => {
      const message = error(value);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    });
}

/** A string that `parse` accepts; a string that `parse` returns says what is wrong. */
function parsedText(parse: (value: string) => object | string): z.ZodString {
  return text(300, (value) => {
    const parsed = parse(value);
    return typeof parsed === 'string' ? parsed : undefined;
  });
}

function notSupported(error: string) {
  return z.never({ error }).optional();
}

function labelError(value: string): string | undefined {
  return lineError('A name', value);
}

function reasonError(value: string): string | undefined {
  return lineError('A reason', value);
}

function lineError(what: string, value: string): string | undefined {
  if (value.trim() === '') return `${what} must not be empty`;
  // Names appear in records and on terminals. JSON does not escape line separators, and viewers end a line there; bidi
  // controls make a name look like another one.
  return /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(value)
    ? `${what} must not contain a control character`
    : undefined;
}

function templateError(value: string): string | undefined {
  const template = parseSecretTemplate(value);
  if (typeof template === 'string') return template;
  return headerValueError(template.parts.map((part) => (typeof part === 'string' ? part : 'x')).join(''));
}

function urlError(value: string): string | undefined {
  // What follows the authority begins with a delimiter, so that no text can be split in two ways.
  const [, scheme, authority] = /^(https?):\/\/([^/?#\\]*)(?:[/?#][\x21-\x5b\x5d-\x7e]*)?$/.exec(value) ?? [];
  if (scheme === undefined || authority === undefined)
    return 'A callback URL must begin with http:// or https:// and contain visible ASCII only, without a backslash';
  if (value.includes('#')) return 'A callback URL must not have a fragment';
  if (authority.includes('@'))
    return 'A callback URL must not contain a user name or password; use request_headers';
  // The URL parser also reads 0x7f.1 and 127.1 as addresses; here a host has one spelling.
  const host = parseAuthority(authority, scheme === 'http' ? 80 : 443);
  return typeof host === 'string' || !URL.canParse(value)
    ? 'A callback URL must name a host or an address in its canonical spelling, and a port from 1 to 65535, if any'
    : undefined;
}

function refineEnvVars(vars: Readonly<Record<string, string>>, context: z.RefinementCtx): void {
  const names = Object.keys(vars);
  if (names.length > 100)
    context.addIssue({ code: 'custom', message: 'Input must have at most 100 entries' });
  for (const name of names)
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name) || vars[name]?.includes('\0'))
      context.addIssue({ code: 'custom', path: [name], message: ENV_VAR });
}

const ENV_VAR = 'A variable must have a name of letters, digits and underscores, and a value without NUL';

function refineUniqueNames(headers: readonly { readonly name: string }[], context: z.RefinementCtx): void {
  const seen = new Set<string>();
  for (const [i, { name }] of headers.entries()) {
    const folded = foldHeaderName(name);
    const message = 'This header is set twice; keep one of them';
    if (seen.has(folded)) context.addIssue({ code: 'custom', path: [i, 'name'], message });
    seen.add(folded);
  }
}
