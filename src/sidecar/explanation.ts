// Explains what the rules decide about one request, in the order in which the data path decides. Sends nothing and resolves
// no name: what depends on the address of a name is a condition.
import type { Address } from '../base/address.ts';
import { type Authority, parseAuthority } from '../policy/authority/authority.ts';
import type { Cover, Decision, Policy } from '../policy/policy.ts';
import { neverForwarded } from '../proxy/gate/request-plan.ts';
import { type RefusalCode, refuse } from '../proxy/refusal.ts';
import {
  type EgressRules,
  isPortOpen,
  mayInjectCleartext,
  refuseAddress,
} from '../proxy/upstream/address-guard.ts';

export type AskedRequest = {
  readonly method: string;
  readonly scheme: 'http' | 'https';
  readonly authority: Authority;
  /** In origin-form, as the client sends it. */
  readonly target: string;
};

export type Explanation = {
  readonly outcome: 'injected' | 'callback' | 'intercepted' | 'tunnelled' | 'local' | 'refused';
  /** Why, as one sentence. */
  readonly reason: string;
  /** The rule or callback that decides. */
  readonly entry?: { readonly list: 'rules' | 'callbacks'; readonly index: number; readonly name: string };
  /** Names only. */
  readonly headers?: readonly string[];
  readonly masked?: 'head' | 'body';
  readonly refusal?: { readonly code: RefusalCode; readonly message: string; readonly hint?: string };
  /** What is known only when the request is sent. */
  readonly conditions: readonly string[];
};

/** Parses an absolute URL without changing its path; a string says what is wrong. */
export function parseAskedUrl(text: string, method: string): AskedRequest | string {
  const [, written = '', host = '', rest = ''] = /^(https?|wss?):\/\/([^/?#]*)([^#]*)/i.exec(text) ?? [];
  if (written === '')
    return 'give an absolute URL that begins with http:// or https://, as in https://api.example.com/v1/models';
  const scheme = /^(https|wss)$/i.test(written) ? 'https' : 'http';
  const authority = parseAuthority(host, scheme === 'https' ? 443 : 80);
  if (typeof authority === 'string') return `the host of the URL is not valid (${authority})`;
  if (!/^[\x21-\x7e]*$/.test(rest)) return 'the path of the URL must be percent-encoded ASCII';
  return { method, scheme, authority, target: rest.startsWith('/') ? rest : `/${rest}` };
}

/** What the config of the proxy adds to the rules. */
export type ProxySettings = {
  readonly egress: EgressRules;
  readonly reservedHost: string;
  readonly masksBodies: boolean;
};

export function explain(request: AskedRequest, policy: Policy, settings: ProxySettings): Explanation {
  const { authority, method, scheme, target } = request;
  const { egress, reservedHost, masksBodies } = settings;
  if (authority.host === reservedHost) return ofReservedHost(request);
  const cover = policy.coverOf(authority);
  if (cover.kind === 'refuse') return refused(cover.reason, cover.detail);
  const blocked = addressRefusal(request, cover, policy, egress);
  if (blocked !== undefined) return blocked;
  const conditions = conditionsOf(request, cover, egress);
  // What a tunnel for https carries is not read.
  if (cover.kind === 'tunnel' && scheme === 'https')
    return { outcome: 'tunnelled', reason: TUNNELLED[cover.reason], conditions };
  if (neverForwarded.has(method.toUpperCase()))
    return refused(
      'method_refused',
      `${method.toUpperCase()} is not forwarded where the proxy reads the request`,
    );
  const decision = policy.decide(authority, target);
  if (decision.kind === 'refuse') return refused(decision.reason, decision.detail);
  const injects = decision.kind === 'intercept' && decision.apply !== 'none';
  if (injects && scheme === 'http' && !mayInjectCleartext(authority, egress))
    return refused('cleartext_refused', `a rule matches ${authority.text}, and the URL is http://`);
  if (decision.kind === 'tunnel') return { ...explainDecision(decision), conditions };
  const masked = masksBodies || policy.scrubsBodies(authority) ? 'body' : 'head';
  return { ...explainDecision(decision), masked, conditions };
}

function ofReservedHost({ authority, scheme }: AskedRequest): Explanation {
  if (scheme === 'https')
    return refused('reserved_host', `${authority.host} is the reserved host of the proxy`);
  const reason = `${authority.host} is the reserved host: the proxy itself responds, before any rule`;
  return { outcome: 'local', reason, conditions: [] };
}

const TUNNELLED = {
  no_proxy: 'an entry of no_proxy matches the host, so nothing is intercepted and no header is injected',
  no_match: 'no rule and no callback matches the host, so nothing is intercepted and no header is injected',
} as const;

function explainDecision(
  decision: Exclude<Decision, { kind: 'refuse' }>,
): Omit<Explanation, 'conditions' | 'masked'> {
  if (decision.kind === 'tunnel') return { outcome: 'tunnelled', reason: TUNNELLED[decision.reason] };
  switch (decision.apply) {
    case 'rule': {
      const { index, name, headers } = decision.rule;
      const names = headers.map((header) => header.name);
      const reason = `the rule ${name} is the first that matches host and path`;
      return { outcome: 'injected', reason, entry: { list: 'rules', index, name }, headers: names };
    }
    case 'callback': {
      const { index, name } = decision.callback;
      const reason = `no rule matches the host; the callback ${name} does, and its endpoint names the headers`;
      return { outcome: 'callback', reason, entry: { list: 'callbacks', index, name } };
    }
    case 'none':
      return { outcome: 'intercepted', reason: NO_PATH };
  }
}

const NO_PATH = 'rules match the host, and none of them the path, so no header is injected';

/** What is refused before a rule decides, as far as it is known without a lookup. */
function addressRefusal(
  { authority, scheme }: AskedRequest,
  cover: Exclude<Cover, { kind: 'refuse' }>,
  policy: Policy,
  egress: EgressRules,
): Explanation | undefined {
  const isOpen = isNamed(cover) || isPortOpen(authority.port, cover.portListed, egress);
  if (!isOpen && !egress.allowLoopback)
    return refused(
      'port_denied',
      `no rule matches the host, and port ${authority.port} is not in egress.ports`,
    );
  if (authority.kind === 'name') return undefined;
  const purpose = {
    authority,
    isProvenRuleHost: isProven(cover, scheme),
    denies: (address: Address) => policy.deniesAddress(address, authority.port),
  };
  const found = refuseAddress(authority.host, purpose, egress);
  return found && refused(found.refused, `${authority.host}: ${found.cause ?? found.message}`);
}

function isNamed(cover: Cover): cover is Extract<Cover, { kind: 'intercept' }> {
  return cover.kind === 'intercept';
}

function isProven(cover: Cover, scheme: AskedRequest['scheme']): boolean {
  return isNamed(cover) && cover.exactName && scheme === 'https';
}

function conditionsOf(
  { authority, scheme }: AskedRequest,
  cover: Exclude<Cover, { kind: 'refuse' }>,
  egress: EgressRules,
): readonly string[] {
  if (authority.kind !== 'name') return [];
  const isOpen = isNamed(cover) || isPortOpen(authority.port, cover.portListed, egress);
  const mayBePrivate = egress.privateByRule === 'tls' && isProven(cover, scheme);
  return [
    ...(isOpen ? [] : [`port ${authority.port} is used only if ${authority.host} resolves to loopback`]),
    mayBePrivate
      ? `the name ${authority.host} may resolve to a private address, because a rule names it and TLS proves it`
      : `every address of ${authority.host} must be public, or allowed by egress.allow_private (SALLYPORT_EGRESS_ALLOW_PRIVATE)`,
    ...(scheme === 'https' && isNamed(cover)
      ? ['the certificate of the host must be trusted: public roots, or SALLYPORT_UPSTREAM_CA']
      : []),
  ];
}

function refused(code: RefusalCode, reason: string): Explanation {
  const { message, hint } = refuse(code);
  return {
    outcome: 'refused',
    reason,
    refusal: { code, message, ...(hint === undefined ? {} : { hint }) },
    conditions: [],
  };
}
