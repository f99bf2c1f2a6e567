// Ways to send something else than what was judged.
import { type Mutation, bothVersions } from './mutation.ts';

export const judgedIsSent: readonly Mutation[] = [
  {
    invariant: 'I3',
    name: 'ambiguous spellings pass',
    versions: bothVersions,
    file: 'src/policy/policy.ts',
    text: "if (typeof readings === 'string') return ambiguousPath(readings);",
    replacement: "if (typeof readings === 'string') return decision;",
    breaks: 'a path that an origin resolves out of /v1 carries the credential',
  },
  {
    invariant: 'I3',
    name: 'the path is judged in one spelling',
    versions: bothVersions,
    file: 'src/policy/policy.ts',
    text: 'isAgreed ? (winner ?? NO_PATH_MATCH) : ambiguousPath(TWO_READINGS)',
    replacement: 'winner ?? NO_PATH_MATCH',
    breaks: 'the origin that decodes gets another path than the one judged',
  },
  {
    invariant: 'I3',
    name: 'the query is judged too',
    versions: bothVersions,
    file: 'src/policy/policy.ts',
    text: 'query < 0 ? target : target.slice(0, query)',
    replacement: 'query < 0 ? target : target.slice(query + 1)',
    breaks: 'a query that spells /v1/ earns the credential of /v1/',
  },
  {
    invariant: 'I3',
    name: 'absolute-form leaves as it came',
    file: 'src/proxy/h1/outgoing-head.ts',
    text: 'target: target.rewritten, drop',
    replacement: 'drop',
    breaks: 'the origin gets another target than the origin-form that was judged',
  },
  {
    invariant: 'I3',
    name: 'path parameters are part of the path',
    versions: bothVersions,
    file: 'src/policy/match/path-spelling.ts',
    text: ".replace(/;[^/]*/g, '')",
    replacement: '',
    breaks: 'an origin that cuts `;…` reads another path than the one judged',
  },
  {
    invariant: 'I3',
    name: 'other fields may claim the URL',
    versions: bothVersions,
    file: 'src/proxy/gate/inject.ts',
    text: 'isGatewayClaim(bytes, start, end) || ',
    replacement: '',
    breaks: 'X-Original-URL takes the credential to a path of its choice',
  },
];
