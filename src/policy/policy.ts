// The compiled form of a proxy_config. It is immutable, and its decisions cannot fail: whether a CONNECT to an authority
// is denied, tunnelled or intercepted (coverOf), and what a request for a target there gets (decide). Opens no socket,
// resolves no name and reads no secret.
import type { Secret } from '../base/secret.ts';
import type { Steps } from '../base/steps.ts';
import type { Address } from '../base/address.ts';
import type { Authority } from './authority/authority.ts';
import type { DestinationList } from './match/destination-list.ts';
import { createHostIndex, type Indexed } from './match/host-index.ts';
import type { HostPattern } from './match/host-pattern.ts';
import { contradictionOf, createPathIndex, type PathFinder, type PathIndex } from './match/path-index.ts';
import type { PathPattern } from './match/path-pattern.ts';
import { readPath } from './match/path-spelling.ts';

/** `masks`: the values to mask in the responses of the upstream. */
export type InjectedHeader = {
  readonly name: string;
  readonly value: Secret | string;
  readonly masks: readonly Secret[];
};

export type CompiledRule = {
  readonly index: number;
  readonly name: string;
  readonly headers: readonly InjectedHeader[];
  readonly hosts: readonly HostPattern[];
  /** Empty: every path. */
  readonly paths: readonly PathPattern[];
  readonly scrubsBodies: boolean;
  /** Why its requests are refused, for their record; undefined: its headers are injected. */
  readonly refusal: string | undefined;
};

/** `id` identifies the entry with its secrets, for cache keys. */
export type CompiledCallback = {
  readonly index: number;
  readonly name: string;
  readonly id: string;
  readonly url: string;
  readonly requestHeaders: readonly { readonly name: string; readonly value: Secret | string }[];
  readonly ttlSeconds: number;
  readonly hosts: readonly HostPattern[];
  readonly scrubsBodies: boolean;
};

type Denial<Reason> = { readonly kind: 'refuse'; readonly reason: Reason; readonly detail: string };

/** `portListed`: the allow_list names this very port; `exactName`: a rule or callback names this very host. */
export type Cover =
  | Denial<'access_denied'>
  | { readonly kind: 'tunnel'; readonly reason: 'no_proxy' | 'no_match'; readonly portListed: boolean }
  | { readonly kind: 'intercept'; readonly by: 'rule' | 'callback'; readonly exactName: boolean };

export type Decision =
  | Denial<'access_denied' | 'ambiguous_path'>
  | { readonly kind: 'tunnel'; readonly reason: 'no_proxy' | 'no_match' }
  | { readonly kind: 'intercept'; readonly apply: 'rule'; readonly rule: CompiledRule }
  | { readonly kind: 'intercept'; readonly apply: 'callback'; readonly callback: CompiledCallback }
  | { readonly kind: 'intercept'; readonly apply: 'none'; readonly reason: 'no_path_match' };

export type Policy = {
  readonly revision: number;
  /** Decides on a connection to this authority. */
  coverOf(authority: Authority): Cover;
  /** Decides on a request for `target`, in origin-form as it will be sent (or `*`). Never throws. */
  decide(authority: Authority, target: string): Decision;
  /** Is a resolved address, at this port, in a range of the deny_list? */
  deniesAddress(address: Address, port: number): boolean;
  /** The secrets of every rule on this host, to mask in its responses; the same array each time. */
  secretsFor(authority: Authority): readonly Secret[];
  /** Are they masked in bodies too? Yes if any rule or callback on this host says so, also one that never wins. */
  scrubsBodies(authority: Authority): boolean;
  readonly noProxyEntries: readonly string[];
} & AuthoredParts;

type AuthoredParts = {
  /** Enabled ones only, in the author's order. */
  readonly rules: readonly CompiledRule[];
  readonly callbacks: readonly CompiledCallback[];
  /** The `env_vars` of the rules: what clients find in place of credentials. */
  readonly placeholders: Readonly<Record<string, string>>;
};

export type PolicyParts = AuthoredParts & {
  readonly revision: number;
  readonly noProxy: DestinationList;
  readonly noProxyEntries: readonly string[];
  readonly allow: DestinationList | undefined;
  readonly deny: DestinationList | undefined;
};

/** Creates the policy. A destination is evaluated once; after that its verdict is one lookup in a map. */
export function* createPolicy(parts: PolicyParts): Steps<Policy> {
  const evaluate = yield* createEvaluator(parts);
  const verdicts = new Map<string, Verdict>();
  let secretCount = 0;
  const decide = createDecider();
  const verdictOn = (authority: Authority): Verdict => {
    const known = verdicts.get(authority.text);
    if (known !== undefined) return known;
    // Emptied when full: an agent that requests many names pays for the evaluation each time and cannot make this grow.
    if (verdicts.size >= MAX_VERDICTS || secretCount >= MAX_SECRETS) {
      verdicts.clear();
      secretCount = 0;
    }
    const verdict = evaluate(authority);
    secretCount += verdict.secrets.length;
    verdicts.set(authority.text, verdict);
    return verdict;
  };
  return Object.freeze({
    revision: parts.revision,
    coverOf: (authority: Authority) => verdictOn(authority).cover,
    decide: (authority: Authority, target: string) => decide(verdictOn(authority), target),
    deniesAddress: (address: Address, port: number) => parts.deny?.hasAddress(address, port) ?? false,
    secretsFor: (authority: Authority) => verdictOn(authority).secrets,
    scrubsBodies: (authority: Authority) => verdictOn(authority).scrubsBodies,
    noProxyEntries: parts.noProxyEntries,
    rules: parts.rules,
    callbacks: parts.callbacks,
    placeholders: parts.placeholders,
  });
}

const MAX_VERDICTS = 512;
// Secrets that verdicts or sets of rules reference, at eight bytes each: each of many hosts may have thousands.
const MAX_SECRETS = 131_072;

/** What is decided for a destination before any request. */
type Verdict = {
  readonly cover: Cover;
  /** For every request, unless `paths` is set. */
  readonly decision: Decision;
  /** The rules of a host, if one of them has path patterns. */
  readonly paths: PathFinder<RuleDecision> | undefined;
  readonly secrets: readonly Secret[];
  readonly scrubsBodies: boolean;
};

const NO_SECRETS: readonly Secret[] = Object.freeze([]);

type RuleDecision = Extract<Decision, { apply: 'rule' }>;
type CallbackDecision = Extract<Decision, { apply: 'callback' }>;

function* createEvaluator(parts: PolicyParts): Steps<(authority: Authority) => Verdict> {
  const decisions = parts.rules.map(toRuleDecision);
  const rules = createHostIndex(
    decisions.flatMap((value) => value.rule.hosts.map((pattern) => ({ pattern, value }))),
  );
  yield;
  const callbacks = createHostIndex(parts.callbacks.flatMap(toCallbackDecisions));
  yield;
  const rulesTogether = createRuleSets(
    createPathIndex(decisions.map((value) => ({ patterns: value.rule.paths, value }))),
  );
  return (authority) => {
    const access = checkAccess(parts, authority);
    if (access.kind === 'refuse') return notIntercepted(access);
    if (parts.noProxy.matches(authority).length > 0) return tunnel('no_proxy', access.portListed);
    const matchingRules = rules.matching(authority);
    const matchingCallbacks = callbacks.matching(authority);
    const scrubsBodies =
      matchingRules.some(({ value }) => value.rule.scrubsBodies) ||
      matchingCallbacks.some(({ value }) => value.callback.scrubsBodies);
    if (matchingRules.length > 0)
      return { cover: intercept('rule', matchingRules), ...rulesTogether(matchingRules), scrubsBodies };
    return matchingCallbacks.length > 0
      ? { ...firstCallback(matchingCallbacks), scrubsBodies }
      : tunnel('no_match', access.portListed);
  };
}

type Access = Denial<'access_denied'> | { readonly kind: 'pass'; readonly portListed: boolean };

function checkAccess({ allow, deny }: PolicyParts, authority: Authority): Access {
  const denied = deny?.matches(authority)[0];
  if (denied !== undefined)
    return accessDenied(`${authority.text} is denied by the entry ${denied.text} of the deny_list`);
  const allowed = allow?.matches(authority) ?? [];
  if (allow !== undefined && allowed.length === 0)
    return accessDenied(`${authority.text} is not in the allow_list`);
  return { kind: 'pass', portListed: allowed.some(({ port }) => port === authority.port) };
}

type RuleSet = Omit<Verdict, 'cover' | 'scrubsBodies'>;

/** Caches each set of rules that some host has: hosts under one wildcard share it. */
function createRuleSets(
  paths: PathIndex<RuleDecision>,
): (matching: readonly Indexed<RuleDecision>[]) => RuleSet {
  const sets = new Map<string, RuleSet>();
  let secretCount = 0;
  return (matching) => {
    const decisions = [...new Set(matching.map(({ value }) => value))];
    const key = decisions.map(({ rule }) => rule.index).join();
    const known = sets.get(key);
    if (known !== undefined) return known;
    const readsPath = decisions.some(({ rule }) => rule.paths.length > 0);
    const set = {
      decision: decisions[0] ?? NO_PATH_MATCH,
      paths: readsPath ? paths.among(decisions) : undefined,
      secrets: Object.freeze([
        ...new Set(decisions.flatMap(({ rule }) => rule.headers.flatMap(({ masks }) => masks))),
      ]),
    };
    if (sets.size >= MAX_RULE_SETS || secretCount >= MAX_SECRETS) sets.clear();
    secretCount = set.secrets.length + (sets.size === 0 ? 0 : secretCount);
    sets.set(key, set);
    return set;
  };
}

const MAX_RULE_SETS = 64;

function firstCallback(matching: readonly Indexed<CallbackDecision>[]): Omit<Verdict, 'scrubsBodies'> {
  const decision = matching[0]?.value ?? NO_PATH_MATCH;
  const own = matching.filter(({ value }) => value === decision);
  return { cover: intercept('callback', own), decision, paths: undefined, secrets: NO_SECRETS };
}

/** Caches the decisions on the last paths of each set of rules, without their queries, which decide nothing. */
function createDecider(): (verdict: Verdict, target: string) => Decision {
  // Weak: when no verdict has a set of rules any more, its paths are collected with it.
  let memos = new WeakMap<PathFinder<RuleDecision>, Map<string, Decision>>();
  let count = 0;
  return (verdict, target) => {
    const { cover, decision, paths } = verdict;
    // `OPTIONS *` is about the server, not about a resource on it, so it gets no credential (RFC 9110 §9.3.7).
    if (target === '*' && cover.kind === 'intercept') return NO_PATH_MATCH;
    if (paths === undefined) return decision;
    const query = target.indexOf('?');
    const sent = query < 0 ? target : target.slice(0, query);
    const known = memos.get(paths)?.get(sent);
    if (known !== undefined) return known;
    const decided = decidePath(paths, sent);
    // Refusals with a query are not: no client repeats one that works, and their paths are as many as an agent likes.
    if (sent.length > MAX_MEMO_CHARS || (query >= 0 && decided.kind === 'refuse')) return decided;
    if (count >= MAX_MEMOS) {
      memos = new WeakMap();
      count = 0;
    }
    const memo = memos.get(paths) ?? new Map<string, Decision>();
    memos.set(paths, memo.set(copyOf(sent), decided));
    count += 1;
    return decided;
  };
}

/** Of all rules together. */
const MAX_MEMOS = 1_024;
const MAX_MEMO_CHARS = 256;

/** A substring keeps the whole string in memory, and queries contain secrets. */
function copyOf(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}

function decidePath(paths: PathFinder<RuleDecision>, sent: string): Decision {
  const readings = readPath(sent);
  if (typeof readings === 'string') return ambiguousPath(readings);
  const winner = paths.winnerAsSent(sent);
  const contradiction = contradictionOf(paths, readings, sent, winner);
  return contradiction === undefined ? (winner ?? NO_PATH_MATCH) : ambiguousPath(contradiction);
}

const NO_PATH_MATCH: Decision = Object.freeze({ kind: 'intercept', apply: 'none', reason: 'no_path_match' });

function toRuleDecision(rule: CompiledRule): RuleDecision {
  return Object.freeze({ kind: 'intercept', apply: 'rule', rule });
}

function toCallbackDecisions(callback: CompiledCallback): Indexed<CallbackDecision>[] {
  const value: CallbackDecision = Object.freeze({ kind: 'intercept', apply: 'callback', callback });
  return callback.hosts.map((pattern) => ({ pattern, value }));
}

function intercept(by: 'rule' | 'callback', matching: readonly Indexed<unknown>[]): Cover {
  return Object.freeze({
    kind: 'intercept',
    by,
    exactName: matching.some(({ pattern }) => !pattern.isWildcard),
  });
}

function tunnel(reason: 'no_proxy' | 'no_match', portListed: boolean): Verdict {
  const cover = Object.freeze({ kind: 'tunnel', reason, portListed } as const);
  return notIntercepted(cover);
}

function notIntercepted(cover: Cover & Decision): Verdict {
  return { cover, decision: cover, paths: undefined, secrets: NO_SECRETS, scrubsBodies: false };
}

function accessDenied(detail: string): Denial<'access_denied'> {
  return Object.freeze({ kind: 'refuse', reason: 'access_denied', detail });
}

function ambiguousPath(detail: string): Decision {
  return { kind: 'refuse', reason: 'ambiguous_path', detail };
}
