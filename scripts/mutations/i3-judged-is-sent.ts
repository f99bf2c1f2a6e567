// Ways to send something other than what the policy checked.
import { type Mutation, bothVersions } from './mutation.ts';

export const judgedIsSent: readonly Mutation[] = [
  {
    invariant: 'I3',
    name: 'ambiguous path spellings are accepted',
    versions: bothVersions,
    file: 'src/policy/policy.ts',
    text: "if (typeof readings === 'string') return ambiguousPath(readings);",
    replacement: "if (typeof readings === 'string') return decision;",
    breaks: 'a path that an origin resolves out of /v1 carries the credential',
  },
  {
    invariant: 'I3',
    name: 'the path is checked in one spelling only',
    versions: bothVersions,
    file: 'src/policy/policy.ts',
    text: 'isAgreed ? (winner ?? NO_PATH_MATCH) : ambiguousPath(TWO_READINGS)',
    replacement: 'winner ?? NO_PATH_MATCH',
    breaks: 'an origin that decodes reads a path that was not checked',
  },
  {
    invariant: 'I3',
    name: 'the query is matched as part of the path',
    versions: bothVersions,
    file: 'src/policy/policy.ts',
    text: 'query < 0 ? target : target.slice(0, query)',
    replacement: 'query < 0 ? target : target.slice(query + 1)',
    breaks: 'a query that contains /v1/ gets the credential for /v1/',
  },
  {
    invariant: 'I3',
    name: 'absolute-form is sent unchanged',
    file: 'src/proxy/h1/outgoing-head.ts',
    text: 'target: target.rewritten, drop',
    replacement: 'drop',
    breaks: 'the origin gets a target other than the origin-form that was checked',
  },
  {
    invariant: 'I3',
    name: 'path parameters are not removed before matching',
    versions: bothVersions,
    file: 'src/policy/match/path-spelling.ts',
    text: ".replace(/;[^/]*/g, '')",
    replacement: '',
    breaks: 'an origin that drops `;…` reads a path that was not checked',
  },
  {
    invariant: 'I3',
    name: 'fields that override the URL are accepted',
    versions: bothVersions,
    file: 'src/proxy/gate/inject.ts',
    text: 'isGatewayField(bytes, start, end) || ',
    replacement: '',
    breaks: 'X-Original-URL directs the credential to any path',
  },
];
