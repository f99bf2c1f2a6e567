// The compiled form of a proxy_config: immutable, and after it deciding cannot fail. Two questions: what becomes of a
// CONNECT to this authority (coverOf), and of a request for this target there (decide). This file decides;
// it opens no socket, resolves no name and reads no secret.
import type { Secret } from '../base/secret.ts';
import type { Address } from './authority/address.ts';
import type { Authority } from './authority/authority.ts';
import type { DestinationList } from './match/destination-list.ts';
import { createHostIndex, type Indexed } from './match/host-index.ts';
import type { HostPattern } from './match/host-pattern.ts';
import { createPathIndex, type PathFinder, type PathIndex } from './match/path-index.ts';
import type { PathPattern } from './match/path-pattern.ts';
import { readPath } from './match/path-spelling.ts';

/** `masks`: the values to mask in what the origin answers. */
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

type Refusal<Reason> = { readonly kind: 'refuse'; readonly reason: Reason; readonly detail: string };

/** `portListed`: the allow_list names this very port; `exactName`: a rule or callback names this very host. */
export type Cover =
  | Refusal<'access_denied'>
  | { readonly kind: 'tunnel'; readonly reason: 'no_proxy' | 'no_match'; readonly portListed: boolean }
  | { readonly kind: 'intercept'; readonly by: 'rule' | 'callback'; readonly exactName: boolean };

export type Decision =
  | Refusal<'access_denied' | 'ambiguous_path'>
  | { readonly kind: 'tunnel'; readonly reason: 'no_proxy' | 'no_match' }
  | { readonly kind: 'intercept'; readonly apply: 'rule'; readonly rule: CompiledRule }
  | { readonly kind: 'intercept'; readonly apply: 'callback'; readonly callback: CompiledCallback }
  | { readonly kind: 'intercept'; readonly apply: 'none'; readonly reason: 'no_path_match' };

export type Policy = {
  readonly revision: number;
  /** What becomes of a connection to this authority. */
  coverOf(authority: Authority): Cover;
  /** What becomes of a request for `target`, in origin-form as it will be sent (or `*`). Never throws. */
  decide(authority: Authority, target: string): Decision;
  /** Is a resolved address, at this port, in a range of the deny_list? */
  deniesAddress(address: Address, port: number): boolean;
  /** The secrets of every rule on this host, to mask in its answers; the same array each time. */
  secretsFor(authority: Authority): readonly Secret[];
  /** Are they to be masked in bodies too? Any rule or callback on this host can ask for it, also one that another takes it from. */
  scrubsBodies(authority: Authority): boolean;
  readonly noProxyEntries: readonly string[];
  readonly summary: { readonly rules: number; readonly callbacks: number };
};

export type PolicyParts = {
  readonly revision: number;
  /** Enabled ones only, in the author's order. */
  readonly rules: readonly CompiledRule[];
  readonly callbacks: readonly CompiledCallback[];
  readonly noProxy: DestinationList;
  readonly noProxyEntries: readonly string[];
  readonly allow: DestinationList | undefined;
  readonly deny: DestinationList | undefined;
};

/** Makes the policy. A destination is judged once; after that, asking for it is one look into a map. */
export function createPolicy(parts: PolicyParts): Policy {
  const judge = createJudge(parts);
  const verdicts = new Map<string, Verdict>();
  let held = 0;
  const decide = createDecider();
  const verdictOn = (authority: Authority): Verdict => {
    const known = verdicts.get(authority.text);
    if (known !== undefined) return known;
    // Emptied when full: an agent that sprays names pays for the walk each time and cannot make this grow.
    if (verdicts.size >= MAX_VERDICTS || held >= MAX_HELD) {
      verdicts.clear();
      held = 0;
    }
    const verdict = judge(authority);
    held += verdict.secrets.length;
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
    summary: Object.freeze({ rules: parts.rules.length, callbacks: parts.callbacks.length }),
  });
}

const MAX_VERDICTS = 512;
// Secrets that verdicts point to: thousands may meet on each of many hosts.
const MAX_HELD = 200_000;

/** What is known of a destination before any request. */
type Verdict = {
  readonly cover: Cover;
  /** For every request, unless the path is read. */
  readonly decision: Decision;
  /** The rules of a host of which one reads the path. */
  readonly paths: PathFinder<RuleDecision> | undefined;
  readonly secrets: readonly Secret[];
  readonly scrubsBodies: boolean;
};

const NO_SECRETS: readonly Secret[] = Object.freeze([]);

type RuleDecision = Extract<Decision, { apply: 'rule' }>;
type CallbackDecision = Extract<Decision, { apply: 'callback' }>;

function createJudge(parts: PolicyParts): (authority: Authority) => Verdict {
  const decisions = parts.rules.map(toRuleDecision);
  const rules = createHostIndex(
    decisions.flatMap((value) => value.rule.hosts.map((pattern) => ({ pattern, value }))),
  );
  const callbacks = createHostIndex(parts.callbacks.flatMap(toCallbackDecisions));
  const rulesTogether = createRuleSets(
    createPathIndex(decisions.map((value) => ({ patterns: value.rule.paths, value }))),
  );
  return (authority) => {
    const access = judgeAccess(parts, authority);
    if (access.kind === 'refuse') return untouched(access);
    if (parts.noProxy.matches(authority).length > 0) return tunnel('no_proxy', access.portListed);
    const matchingRules = rules.matching(authority);
    const matchingCallbacks = callbacks.matching(authority);
    const scrubsBodies =
      matchingRules.some(({ value }) => value.rule.scrubsBodies) ||
      matchingCallbacks.some(({ value }) => value.callback.scrubsBodies);
    if (matchingRules.length > 0)
      return { cover: intercept('rule', matchingRules), ...rulesTogether(matchingRules), scrubsBodies };
    return matchingCallbacks.length > 0
      ? { ...judgeCallbacks(matchingCallbacks), scrubsBodies }
      : tunnel('no_match', access.portListed);
  };
}

type Access = Refusal<'access_denied'> | { readonly kind: 'pass'; readonly portListed: boolean };

function judgeAccess({ allow, deny }: PolicyParts, authority: Authority): Access {
  const denied = deny?.matches(authority)[0];
  if (denied !== undefined) return accessDenied(`${authority.text} is in the deny_list, by ${denied.text}`);
  const allowed = allow?.matches(authority) ?? [];
  if (allow !== undefined && allowed.length === 0)
    return accessDenied(`${authority.text} is not in the allow_list`);
  return { kind: 'pass', portListed: allowed.some(({ port }) => port === authority.port) };
}

type RuleSet = Omit<Verdict, 'cover' | 'scrubsBodies'>;

/** Remembers each set of rules that some host has: hosts under one wildcard share it. */
function createRuleSets(
  paths: PathIndex<RuleDecision>,
): (matching: readonly Indexed<RuleDecision>[]) => RuleSet {
  const sets = new Map<string, RuleSet>();
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
    if (sets.size >= MAX_RULE_SETS) sets.clear();
    sets.set(key, set);
    return set;
  };
}

const MAX_RULE_SETS = 64;

function judgeCallbacks(matching: readonly Indexed<CallbackDecision>[]): Omit<Verdict, 'scrubsBodies'> {
  const decision = matching[0]?.value ?? NO_PATH_MATCH;
  const own = matching.filter(({ value }) => value === decision);
  return { cover: intercept('callback', own), decision, paths: undefined, secrets: NO_SECRETS };
}

/**
 * Remembers what the last paths of each set of rules led to. Paths with a query are read anew each time: a part of a
 * text would hold all of it in memory, and queries hold secrets.
 */
function createDecider(): (verdict: Verdict, target: string) => Decision {
  // Weak: rules that no verdict names any more take their paths with them.
  let memos = new WeakMap<PathFinder<RuleDecision>, Map<string, Decision>>();
  let count = 0;
  return (verdict, target) => {
    const { paths } = verdict;
    if (paths === undefined) return decideTarget(verdict, target);
    const known = memos.get(paths)?.get(target);
    if (known !== undefined) return known;
    const decision = decideTarget(verdict, target);
    if (target.length > MAX_MEMO_CHARS || target.includes('?')) return decision;
    // Emptied when full, as the verdicts are.
    if (count >= MAX_MEMOS) {
      memos = new WeakMap();
      count = 0;
    }
    const memo = memos.get(paths) ?? new Map<string, Decision>();
    memos.set(paths, memo.set(target, decision));
    count += 1;
    return decision;
  };
}

/** Of all rules together. */
const MAX_MEMOS = 1_024;
const MAX_MEMO_CHARS = 256;

function decideTarget({ cover, decision, paths }: Verdict, target: string): Decision {
  // `OPTIONS *` speaks of the server, not of a resource on it, so no credential is for it (RFC 9110 §9.3.7).
  if (target === '*' && cover.kind === 'intercept') return NO_PATH_MATCH;
  if (paths === undefined) return decision;
  const query = target.indexOf('?');
  const sent = query < 0 ? target : target.slice(0, query);
  const readings = readPath(sent);
  if (typeof readings === 'string') return ambiguousPath(readings);
  const winner = paths.winnerAsSent(sent);
  const agrees = (path: string): boolean => paths.winnerDecoded(path) === winner;
  const { decoded, cut } = readings;
  const isAgreed =
    ((paths.isPlain && decoded === sent) || agrees(decoded)) && (cut === decoded || agrees(cut));
  return isAgreed ? (winner ?? NO_PATH_MATCH) : ambiguousPath(TWO_READINGS);
}

const TWO_READINGS = 'the path as sent and the path decoded meet different rules';
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
  return untouched(cover);
}

/** What is not intercepted. */
function untouched(cover: Cover & Decision): Verdict {
  return { cover, decision: cover, paths: undefined, secrets: NO_SECRETS, scrubsBodies: false };
}

function accessDenied(detail: string): Refusal<'access_denied'> {
  return Object.freeze({ kind: 'refuse', reason: 'access_denied', detail });
}

function ambiguousPath(detail: string): Decision {
  return { kind: 'refuse', reason: 'ambiguous_path', detail };
}
