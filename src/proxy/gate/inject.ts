// THE GATE. Policy decides on the bytes that will be sent; the headers of the rule or of the callback become
// field lines. One of the four files that open a secret. It opens no socket.
import type { CallbackOutcome, CallbackResolver } from '../../callback/resolver.ts';
import { Secret } from '../../base/secret.ts';
import { Field, type NameTest, compileNames } from '../../http1/field-name.ts';
import { fieldLine } from '../../http1/head-writer.ts';
import type { RequestHead } from '../../http1/head-parser.ts';
import type { Authority } from '../../policy/authority/authority.ts';
import type { CompiledCallback, CompiledRule, InjectedHeader, Policy } from '../../policy/policy.ts';
import { type EgressRules, mayInjectCleartext } from '../upstream/address-guard.ts';
import { isBinding } from './connection-auth.ts';
import { type Mask, compileMask } from '../mask/mask.ts';
import { type Refusal, refuse } from '../refusal.ts';
import type { Scheme } from '../context.ts';
import { refuseUnprepared } from '../mask/scrub.ts';

export type Injection = {
  /** Names as authored, for the record. */
  readonly names: readonly string[];
  /** For the names of fields, with `_` read as `-`: what the agent may not send beside ours. */
  readonly isReplaced: NameTest;
  readonly lines: Buffer;
  /** The same for HTTP/2: name, value, name, value, …, names in lower case. */
  readonly list: readonly string[];
  /** The names in `list`. */
  readonly listed: readonly string[];
  /** It authenticates the connection: none but its own request may go over that. */
  readonly isBinding: boolean;
};

/** What happens to one request that may pass. */
export type Passage = {
  readonly injection: Injection | undefined;
  readonly mask: Mask | undefined;
  /** What is masked in the body too; there only if something is. */
  readonly bodyMask?: Mask | undefined;
  readonly rule?: string;
  readonly callback?: string;
  readonly isCached?: boolean;
  /** Why nothing is injected. */
  readonly reason?: 'no_path_match' | 'no_match' | 'no_proxy';
};

export type GateRequest = {
  readonly policy: Policy;
  readonly authority: Authority;
  readonly path: string;
  readonly scheme: Scheme;
  readonly egress: EgressRules;
  readonly callbacks: CallbackResolver;
  /** Masks secrets in the body whatever the policy says. */
  readonly scrubsBodies?: boolean;
};

/** The gate's answer; a promise only where a callback has to be asked. Nothing is sent before it answers. */
export function judgeRequest(request: GateRequest): Passage | Refusal | Promise<Passage | Refusal> {
  const { policy, authority, path } = request;
  const decision = policy.decide(authority, path);
  if (decision.kind === 'refuse') return refuse(decision.reason, decision.detail);
  if (decision.kind === 'tunnel') return passages[decision.reason];
  const hostMask = maskOf(policy.secretsFor(authority));
  if (decision.apply === 'none') {
    if (!hostMask) return passages.no_path_match;
    return withBodyMask({ ...passages.no_path_match, mask: hostMask }, request);
  }
  if (request.scheme === 'http' && !mayInjectCleartext(authority, request.egress))
    return refuse('cleartext_refused');
  if (decision.apply === 'rule') {
    const { rule } = decision;
    return withBodyMask(rulePassage(rule, hostMask), request);
  }
  const { callback } = decision;
  const outcome = request.callbacks.resolve(callback, authority);
  return outcome instanceof Promise
    ? outcome.then((settled) => passageOf(callback, settled, request))
    : passageOf(callback, outcome, request);
}

/** Marks in `drop` what the agent sent under an injected name, and what only a gateway may say of a request. */
export function markReplaced(head: RequestHead, injection: Injection, drop: Uint8Array): void {
  const { fields, bytes } = head;
  for (let i = 0; i < fields.count; i += 1) {
    if (fields.id(i) === Field.host) continue;
    const start = fields.nameStart(i);
    const end = fields.nameEnd(i);
    if (isGatewayClaim(bytes, start, end) || injection.isReplaced(bytes, start, end)) drop[i] = 1;
  }
}

/**
 * Fields by which a request claims another path than its target's (judged is not sent), another client or host than its
 * own, or a proxy for its server (httpoxy): a host that believes them believes them with our credential beside them.
 */
const isGatewayClaim: NameTest = compileNames([
  'x-original-url',
  'x-rewrite-url',
  'x-forwarded-uri',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
  'forwarded',
  'via',
  'proxy',
]);

const passages = {
  no_match: { injection: undefined, mask: undefined, reason: 'no_match' },
  no_proxy: { injection: undefined, mask: undefined, reason: 'no_proxy' },
  no_path_match: { injection: undefined, mask: undefined, reason: 'no_path_match' },
} as const satisfies Record<string, Passage>;

function passageOf(
  callback: CompiledCallback,
  outcome: CallbackOutcome,
  request: GateRequest,
): Passage | Refusal {
  if (!outcome.ok) return refuse('callback_failed', outcome.reason);
  const { headers, cached } = outcome;
  const passage = {
    injection: headers.length === 0 ? undefined : injectionOf(headers),
    mask: maskOf(masksOf(headers)),
    callback: callback.name,
    isCached: cached,
  };
  return withBodyMask(passage, request);
}

// Headers arrays are frozen and live as long as their rule or cache entry: rendered once, dropped with them.
const injections = new WeakMap<readonly InjectedHeader[], Injection>();
const rulePassages = new WeakMap<CompiledRule, Passage>();
const masks = new WeakMap<readonly Secret[], Mask>();
const headerMasks = new WeakMap<readonly InjectedHeader[], readonly Secret[]>();

/** The same object for each request: a rule has one mask for as long as its hosts have the same secrets. */
function rulePassage(rule: CompiledRule, mask: Mask | undefined): Passage {
  const known = rulePassages.get(rule);
  if (known && known.mask === mask) return known;
  const passage: Passage = Object.freeze({ injection: injectionOf(rule.headers), mask, rule: rule.name });
  rulePassages.set(rule, passage);
  return passage;
}

function injectionOf(headers: readonly InjectedHeader[]): Injection {
  const known = injections.get(headers);
  if (known) return known;
  const lowerNames = headers.map(({ name }) => name.toLowerCase());
  const injection: Injection = {
    names: headers.map(({ name }) => name),
    isReplaced: compileNames(lowerNames),
    lines: Buffer.concat(headers.map(({ name, value }) => fieldLine(name, valueText(value)))),
    list: headers.flatMap(({ name, value }) => [name.toLowerCase(), valueText(value)]),
    listed: lowerNames,
    isBinding: headers.some(
      ({ name, value }) => name.toLowerCase() === 'authorization' && isBinding(valueText(value)),
    ),
  };
  injections.set(headers, injection);
  return injection;
}

function masksOf(headers: readonly InjectedHeader[]): readonly Secret[] {
  const known = headerMasks.get(headers);
  if (known) return known;
  const secrets = headers.flatMap((header) => header.masks);
  headerMasks.set(headers, secrets);
  return secrets;
}

function maskOf(secrets: readonly Secret[]): Mask | undefined {
  if (secrets.length === 0) return undefined;
  const known = masks.get(secrets);
  if (known) return known;
  const mask = compileMask(secrets.map((secret) => secret.reveal()));
  masks.set(secrets, mask);
  return mask;
}

/** Without values that are long enough there is nothing to search for, and no need to ask for other answers. */
function withBodyMask(
  passage: Passage,
  { policy, authority, scrubsBodies = false }: GateRequest,
): Passage | Refusal {
  const { mask } = passage;
  if (!mask || mask.byBeginning.size === 0) return passage;
  if (!scrubsBodies && !policy.scrubsBodies(authority)) return passage;
  return refuseUnprepared(mask) ?? { ...passage, bodyMask: mask };
}

function valueText(value: Secret | string): string {
  return value instanceof Secret ? value.reveal() : value;
}
