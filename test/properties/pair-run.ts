// I1 and I4 over generated documents and requests: what the real policy, plan and gate make of a request is what the
// model makes of it, byte for byte; and no value of a rule is in a head that the rule does not apply to. In process: no
// socket is opened, so millions can be tried.
import * as fc from 'fast-check';
import { Secret } from '../../src/base/secret.ts';
import type { CallbackResolver } from '../../src/callback/resolver.ts';
import { isHeadError } from '../../src/http1/head-error.ts';
import { parseRequestHead } from '../../src/http1/head-parser.ts';
import { type Authority, parseAuthority } from '../../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../../src/policy/compile.ts';
import type { Policy } from '../../src/policy/policy.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import { type EgressRules, parseCleartextDestination } from '../../src/proxy/upstream/address-guard.ts';
import { decideRequest } from '../../src/proxy/gate/inject.ts';
import { outgoingRequestHead } from '../../src/proxy/h1/outgoing-head.ts';
import { isRefusal } from '../../src/proxy/refusal.ts';
import { planRequest } from '../../src/proxy/gate/request-plan.ts';
import { type Pairing, pairings, wireOf } from './pair-arbitraries.ts';
import {
  type Outcome,
  type ModelRequest,
  type ModelWorld,
  outcomeByModel,
  prefixed,
} from './request-model.ts';
import { type ModelConfig, type ModelHeader, namesHost } from './rule-model.ts';
import { closedEgress } from '../support/closed-egress.ts';

export type PairFigures = {
  readonly seed: number;
  readonly pairs: number;
  readonly documents: number;
  /** Documents that are refused as a whole: a host that access_control denies. */
  readonly refusedDocuments: number;
  readonly perSecond: number;
  /** How often each outcome was met. */
  readonly outcomes: ReadonlyMap<string, number>;
  /** The shrunk counterexample, with what replays it. */
  readonly error: string | undefined;
};

const ROUND = 1_000;
const limits = { maxHeadBytes: 16_384, maxFields: 100, maxTargetBytes: 8_192 } as const;

export function runPairs(options: { readonly documents: number; readonly seed: number }): PairFigures {
  const { documents, seed } = options;
  const outcomes = new Map<string, number>();
  const counts = { pairs: 0, refused: 0 };
  const startedMs = performance.now();
  const property = fc.property(pairings, (pairing) => {
    const policy = policyOf(pairing.config);
    if (!policy) {
      counts.refused += 1;
      return;
    }
    const world = worldOf(pairing);
    const real = realWorld(pairing, policy, world);
    for (const request of pairing.requests) {
      const expected = outcomeByModel(world, request);
      const found = real(request);
      compare(world, request, expected, found);
      holdsDestination(world, request, found);
      counts.pairs += 1;
      // Whether by a rule's exact name or not, and by which protocol, is compared, not counted.
      const reported = expected.reported.replace(/^.*: /, '');
      outcomes.set(reported, (outcomes.get(reported) ?? 0) + 1);
    }
  });
  const checked = fc.check(property, { numRuns: documents, seed });
  return {
    seed,
    pairs: counts.pairs,
    documents,
    refusedDocuments: counts.refused,
    perSecond: counts.pairs / ((performance.now() - startedMs) / 1000),
    outcomes,
    error: checked.failed ? String(checked.errorInstance) : undefined,
  };
}

/** As many documents at a time as memory allows; a failure prints the seed of its own round. */
export function runPairRounds(options: { readonly pairs: number; readonly seed: number }): PairFigures {
  const outcomes = new Map<string, number>();
  const startedMs = performance.now();
  let [pairs, documents, refusedDocuments] = [0, 0, 0];
  for (let seed = options.seed; ; seed += 1) {
    const round = runPairs({ documents: ROUND, seed });
    pairs += round.pairs;
    documents += round.documents;
    refusedDocuments += round.refusedDocuments;
    for (const [reported, count] of round.outcomes)
      outcomes.set(reported, (outcomes.get(reported) ?? 0) + count);
    if (round.error === undefined && pairs < options.pairs) continue;
    const perSecond = pairs / ((performance.now() - startedMs) / 1000);
    return { ...round, pairs, documents, refusedDocuments, perSecond, outcomes };
  }
}

function policyOf(config: ModelConfig): Policy | undefined {
  const parsed = parseProxyConfig(config);
  if (!parsed.ok) {
    // A host that access_control denies; nothing else is wrong with what is generated.
    if (config.access_control && parsed.issues.every(({ loc }) => loc.includes('match_hosts')))
      return undefined;
    throw new Error(`the document is refused: ${JSON.stringify(parsed.issues)}`);
  }
  const compiled = compileProxyConfig(parsed.value, (name) => new Secret(secretOf(name)), 7);
  if (!compiled.ok) throw new Error(`the document does not compile: ${JSON.stringify(compiled.issues)}`);
  return compiled.value;
}

function secretOf(name: string): string {
  return `secret-of-${name}`;
}

function worldOf({ config, allowLoopback, clearListed, failing }: Pairing): ModelWorld {
  return {
    config,
    allowLoopback,
    clearListed,
    secret: secretOf,
    responses: (name) => (failing[Number(name.at(-1))] === true ? undefined : responseOf(name)),
  };
}

function responseOf(name: string): readonly ModelHeader[] {
  return ['Authorization', 'x_api-key'].map((header) => ({
    name: header,
    type: 'opaque',
    value: `response-of-${name}-${header}`,
  }));
}

function realWorld(pairing: Pairing, policy: Policy, world: ModelWorld): (request: ModelRequest) => Outcome {
  const egress: EgressRules = {
    ...closedEgress,
    allowLoopback: pairing.allowLoopback,
    injectCleartext: pairing.clearListed.flatMap((text) => parseCleartextDestination(text) ?? []),
  };
  const responses = new Map(pairing.config.callbacks.map(({ name }) => [name, headersOf(world, name)]));
  const callbacks: Pick<CallbackResolver, 'resolve'> = {
    resolve: ({ name }) => {
      const headers = responses.get(name);
      return headers ? { ok: true, headers, cached: true } : { ok: false, reason: 'as the test says' };
    },
  };
  const deciding = { policy, egress, callbacks: callbacks as CallbackResolver };
  return (request) => {
    const authority = parseAuthority(request.spelled);
    if (typeof authority === 'string') return { reported: `authority ${authority}` };
    if (request.entry === 'plain') return prefixed('plain', realOutcome(deciding, request, undefined));
    const cover = policy.coverOf(authority);
    if (cover.kind === 'refuse') return { reported: `connect ${cover.reason}` };
    if (cover.kind === 'tunnel')
      return { reported: `connect ${cover.reason}${cover.portListed ? ' at a listed port' : ''}` };
    const named = `${cover.by} ${cover.exactName ? 'exact' : 'wildcard'}`;
    return prefixed(named, realOutcome(deciding, request, authority));
  };
}

function headersOf(world: ModelWorld, name: string) {
  return world.responses(name)?.map((header) => ({
    name: header.name,
    value: new Secret(header.value),
    masks: [new Secret(header.value)],
  }));
}

type Deciding = {
  readonly policy: Policy;
  readonly egress: EgressRules;
  readonly callbacks: CallbackResolver;
};

function realOutcome(deciding: Deciding, request: ModelRequest, tunnel: Authority | undefined): Outcome {
  const head = parseRequestHead(Buffer.from(wireOf(request), 'latin1'), 0, limits);
  if (!head || isHeadError(head)) return { reported: `head ${head?.code}` };
  const plan = planRequest(head, tunnel, request.entry === 'tls' ? 'https' : 'http');
  if (isRefusal(plan)) return { reported: plan.refused };
  const passage = decideRequest({ ...deciding, ...plan.target, scheme: plan.scheme });
  if (passage instanceof Promise) return { reported: 'not decided synchronously' };
  if (isRefusal(passage)) return { reported: passage.refused };
  const sent = outgoingRequestHead(plan, passage.injection).toString('latin1');
  const { rule = passage.callback } = passage;
  const reported =
    passage.rule === undefined ? (passage.callback === undefined ? passage.reason : 'callback') : 'rule';
  return { reported: reported ?? 'no reason', sent, ...(rule !== undefined && { rule }) };
}

function compare({ config }: ModelWorld, request: ModelRequest, expected: Outcome, found: Outcome): void {
  if (expected.reported === found.reported && expected.sent === found.sent && expected.rule === found.rule)
    return;
  const to = `${request.entry} ${request.spelled}`;
  throw new Error(JSON.stringify({ to, config, request: wireOf(request), expected, found }));
}

/** I1, without the model: a value names its rule, and the rule must match this host. */
function holdsDestination(
  { config }: ModelWorld,
  { to, entry }: ModelRequest,
  { sent, rule }: Outcome,
): void {
  const owners = sent?.match(/(?:rule|callback)[-_]\d/gi) ?? [];
  const named = [...config.rules, ...config.callbacks].find(({ name }) => name === rule);
  const isOthers = owners.some((owner) => owner.toLowerCase().replace('_', '-') !== rule);
  const isNamed = named !== undefined && namesHost(named, to);
  if (isOthers || (owners.length > 0 && !isNamed))
    throw new Error(`a value of ${owners} left for ${to.host} by ${entry}`);
}
