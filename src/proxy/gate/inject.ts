// The gate. The policy decides on the authority and path that will be sent, and the headers of the rule or of the callback
// become field lines. One of the few files that reveal a secret. It opens no socket.
import type { CallbackOutcome, CallbackResolver } from '../../callback/resolver.ts';
import { Secret } from '../../base/secret.ts';
import type { Drop } from '../../http1/connection-fields.ts';
import { Field, type NameTest, compileNames } from '../../http1/field-name.ts';
import { fieldLine } from '../../http1/head-writer.ts';
import type { RequestHead } from '../../http1/head-parser.ts';
import type { Authority } from '../../policy/authority/authority.ts';
import type {
  CompiledCallback,
  CompiledRule,
  Decision,
  InjectedHeader,
  Policy,
} from '../../policy/policy.ts';
import { type EgressRules, mayInjectCleartext } from '../upstream/address-guard.ts';
import { isBinding } from './connection-auth.ts';
import type { Mask } from '../mask/mask.ts';
import { MaskCache } from '../mask/mask-cache.ts';
import { type Refusal, refuse } from '../refusal.ts';
import type { Scheme } from '../context.ts';
import { refuseUnprepared } from '../mask/scrub.ts';

export type Injection = {
  /** Names as authored, for the record. */
  readonly names: readonly string[];
  /** Matches the names of fields, with `_` read as `-`, that are removed from the client's request. */
  readonly isReplaced: NameTest;
  readonly lines: Buffer;
  /** The same fields for HTTP/2: name, value, name, value, …, with names in lower case. */
  readonly list: readonly string[];
  /** The names in `list`. */
  readonly listed: readonly string[];
  /** The credential authenticates the connection, which must then carry no other request. */
  readonly isBinding: boolean;
};

/** What happens to a request that is allowed. */
export type GateDecision = {
  readonly injection: Injection | undefined;
  readonly mask: Mask | undefined;
  /** Set only if the response body is masked too. */
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
  /** Masks secrets in every response body, even if the policy does not require it for the host. */
  readonly scrubsBodies?: boolean;
};

/** Decides on one request before any of it is sent. A promise only if a callback must be called or a large mask compiled first. */
export function decideRequest(
  request: GateRequest,
): GateDecision | Refusal | Promise<GateDecision | Refusal> {
  const { policy, authority, path } = request;
  const verdict = policy.decide(authority, path);
  if (verdict.kind === 'refuse') return refuse(verdict.reason, verdict.detail);
  if (verdict.kind === 'tunnel') return uninjected[verdict.reason];
  const hostMask = maskOf(policy.secretsFor(authority), request);
  return hostMask instanceof Promise
    ? hostMask.then((mask) => decideIntercepted(verdict, mask, request))
    : decideIntercepted(verdict, hostMask, request);
}

function decideIntercepted(
  verdict: Extract<Decision, { kind: 'intercept' }>,
  hostMask: Mask | undefined,
  request: GateRequest,
): GateDecision | Refusal | Promise<GateDecision | Refusal> {
  const { authority } = request;
  if (verdict.apply === 'rule' && verdict.rule.refusal !== undefined)
    return refuse('rule_unusable', verdict.rule.refusal);
  if (verdict.apply === 'none') {
    if (!hostMask) return uninjected.no_path_match;
    return withBodyMask({ ...uninjected.no_path_match, mask: hostMask }, request);
  }
  if (request.scheme === 'http' && !mayInjectCleartext(authority, request.egress))
    return refuse('cleartext_refused');
  if (verdict.apply === 'rule') {
    const { rule } = verdict;
    return withBodyMask(decideByRule(rule, hostMask), request);
  }
  const { callback } = verdict;
  const outcome = request.callbacks.resolve(callback, authority);
  return outcome instanceof Promise
    ? outcome.then((settled) => decideByCallback(callback, settled, request))
    : decideByCallback(callback, outcome, request);
}

/** Marks in `drop` the client's fields that have an injected name, and those that only a gateway may set. */
export function markReplaced(head: RequestHead, injection: Injection, drop: Drop): void {
  const { fields, bytes } = head;
  for (let i = 0; i < fields.count; i += 1) {
    if (fields.id(i) === Field.host) continue;
    const start = fields.nameStart(i);
    const end = fields.nameEnd(i);
    if (isGatewayField(bytes, start, end) || injection.isReplaced(bytes, start, end)) drop[i] = 1;
  }
}

/**
 * Fields with which a client could claim another path (the upstream would serve a path that was not checked), another
 * client address or host, or set a proxy for the server's own requests (httpoxy). An upstream that trusts such a field
 * would trust it together with the injected credential.
 */
const isGatewayField: NameTest = compileNames([
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

const uninjected = {
  no_match: { injection: undefined, mask: undefined, reason: 'no_match' },
  no_proxy: { injection: undefined, mask: undefined, reason: 'no_proxy' },
  no_path_match: { injection: undefined, mask: undefined, reason: 'no_path_match' },
} as const satisfies Record<string, GateDecision>;

function decideByCallback(
  callback: CompiledCallback,
  outcome: CallbackOutcome,
  request: GateRequest,
): GateDecision | Refusal | Promise<GateDecision | Refusal> {
  if (!outcome.ok) return refuse('callback_failed', outcome.reason);
  const { headers, cached } = outcome;
  const withMask = (mask: Mask | undefined): GateDecision | Refusal =>
    withBodyMask(
      {
        injection: headers.length === 0 ? undefined : injectionOf(headers),
        mask,
        callback: callback.name,
        isCached: cached,
      },
      request,
    );
  const mask = maskOf(masksOf(headers), request);
  return mask instanceof Promise ? mask.then(withMask) : withMask(mask);
}

// Header arrays are frozen and live as long as their rule or cache entry. Values derived from them are cached as long.
const injections = new WeakMap<readonly InjectedHeader[], Injection>();
// By their mask too, so that no decision keeps a mask that was evicted.
const ruleDecisions = new WeakMap<object, WeakMap<CompiledRule, GateDecision>>();
const maskCaches = new WeakMap<Policy, MaskCache>();
const headerMasks = new WeakMap<readonly InjectedHeader[], readonly Secret[]>();

/** Cached for each rule: the same object for each request, unless hosts of the rule have different masks. */
function decideByRule(rule: CompiledRule, mask: Mask | undefined): GateDecision {
  const decisions = ruleDecisions.get(mask ?? NO_MASK) ?? new WeakMap<CompiledRule, GateDecision>();
  const known = decisions.get(rule);
  if (known) return known;
  const decision: GateDecision = Object.freeze({
    injection: injectionOf(rule.headers),
    mask,
    rule: rule.name,
  });
  ruleDecisions.set(mask ?? NO_MASK, decisions.set(rule, decision));
  return decision;
}

const NO_MASK = {};

function injectionOf(headers: readonly InjectedHeader[]): Injection {
  const known = injections.get(headers);
  if (known) return known;
  const lowerNames = headers.map(({ name }) => name.toLowerCase());
  const injection: Injection = {
    names: Object.freeze(headers.map(({ name }) => name)),
    isReplaced: compileNames(lowerNames),
    lines: inOwnMemory(Buffer.concat(headers.map(({ name, value }) => fieldLine(name, valueText(value))))),
    list: headers.flatMap(({ name, value }) => [name.toLowerCase(), valueText(value)]),
    listed: lowerNames,
    isBinding: headers.some(
      ({ name, value }) => name.toLowerCase() === 'authorization' && isBinding(valueText(value)),
    ),
  };
  injections.set(headers, injection);
  return injection;
}

/** A small buffer is a slice of a pool of 64 KiB, which it would keep for as long as its rule lives. */
function inOwnMemory(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

function masksOf(headers: readonly InjectedHeader[]): readonly Secret[] {
  const known = headerMasks.get(headers);
  if (known) return known;
  const secrets = headers.flatMap((header) => header.masks);
  headerMasks.set(headers, secrets);
  return secrets;
}

function maskOf(secrets: readonly Secret[], request: GateRequest): Mask | undefined | Promise<Mask> {
  if (secrets.length === 0) return undefined;
  const { policy } = request;
  const known = maskCaches.get(policy);
  const cache = known ?? new MaskCache();
  if (!known) maskCaches.set(policy, cache);
  return cache.of(secrets, searchesBodies(request), reveal);
}

function reveal(secret: Secret): string {
  return secret.reveal();
}

function searchesBodies({ policy, authority, scrubsBodies = false }: GateRequest): boolean {
  return scrubsBodies || policy.scrubsBodies(authority);
}

/** If no value is long enough to search for, the body is not masked and the upstream may send it in any encoding. */
function withBodyMask(decision: GateDecision, request: GateRequest): GateDecision | Refusal {
  const { mask } = decision;
  if (!mask || mask.bytes === 0) return decision;
  if (!searchesBodies(request)) return decision;
  return refuseUnprepared(mask) ?? { ...decision, bodyMask: mask };
}

function valueText(value: Secret | string): string {
  return value instanceof Secret ? value.reveal() : value;
}
