// The ways in which a row breaks a target with a security effect: the credential was sent with a request that must be
// refused, or was lost, doubled or disclosed; bytes inside or after a request became another request; a request was changed;
// a response went to another request. Not counted: another status, a missing X-Sallyport-Error, another order of fields, a
// refusal of a valid request, a request without the credential at the host that it names, pipelined requests that overtake
// each other upstream, and limits that are this proxy's own choice. Pure.
import { tracesOf } from '../../invariants/credential-scene.ts';
import type { OriginRequest } from '../../support/recording-origin.ts';
import { type MessageObservation, fill } from '../message/message-driver.ts';
import { type PolicyName, SECRET, messagePolicies } from '../message/message-policies.ts';
import type { ExpectedArrival, MessageExpectation, MessageRow } from '../message/message-script.ts';

export type Breakage =
  | 'the credential was sent with a request that must be refused'
  | 'bytes inside or after a request became another request'
  | 'an origin got a changed request'
  | 'the credential was lost'
  | 'the credential was doubled, or sent with another one'
  | 'the credential was sent to a wrong destination'
  | 'an origin got bytes that the proxy must remove'
  | 'the client received the credential'
  | 'a response went to another request'
  | 'the process died';

type Values = Readonly<Record<string, string>>;

/** Limits and the proxy's own token are the choice of each proxy. */
const ownChoices: ReadonlySet<string> = new Set(['head_too_large', 'uri_too_long', 'proxy_auth_required']);
const ownChoiceRows: ReadonlySet<string> = new Set(['F-21 too-far-ahead']);

export function breakages(row: MessageRow, seen: MessageObservation, values: Values): readonly Breakage[] {
  const { expect, script } = row;
  const policy = script.policy ?? 'bearer';
  const unexpected = seen.arrivals.filter(({ body }) => body !== undefined || expect.rest !== undefined);
  const found = new Set<Breakage>();
  let missing = 0;
  for (const wanted of expect.arrivals) {
    const at = unexpected.findIndex((got) => startOf(got) === startWanted(wanted, values));
    const [got] = at === -1 ? [] : unexpected.splice(at, 1);
    if (!got) missing += 1;
    else for (const one of arrivalBreakages(wanted, got, values, policy)) found.add(one);
  }
  for (const one of unexpectedBreakages(row, unexpected, missing)) found.add(one);
  if ((expect.unseen ?? []).some((text) => seen.bytes.includes(fill(text, values))))
    found.add('an origin got bytes that the proxy must remove');
  if (tracesOf(SECRET, [seen.transcript]).length > 0) found.add('the client received the credential');
  if (isCrossed(expect, seen, values)) found.add('a response went to another request');
  return [...found];
}

function unexpectedBreakages(
  { id, script, expect }: MessageRow,
  unexpected: readonly OriginRequest[],
  missing: number,
): Breakage[] {
  if (unexpected.length === 0) return [];
  if (missing > 0) return ['an origin got a changed request'];
  if (unexpected.some(({ target }) => /^\/(?:smuggled|evil)/.test(target)))
    return ['bytes inside or after a request became another request'];
  const isOwnChoice = expect.responses.some(({ code = '' }) => ownChoices.has(code)) || ownChoiceRows.has(id);
  const isCredentialed = unexpected.some((got) => hasCredential(got, script.policy ?? 'bearer'));
  return isCredentialed && !isOwnChoice
    ? ['the credential was sent with a request that must be refused']
    : [];
}

function arrivalBreakages(
  wanted: ExpectedArrival,
  got: OriginRequest,
  values: Values,
  policy: PolicyName,
): Breakage[] {
  const content = got.body?.content.toString('latin1') ?? '';
  const changed: Breakage[] =
    content === fill(wanted.body, values) ? [] : ['an origin got a changed request'];
  if (!wanted.head.includes('{AUTH}'))
    return got.head.includes(SECRET)
      ? [...changed, 'the credential was sent to a wrong destination']
      : changed;
  const credentialBreakages = messagePolicies[policy].injected
    .map(fieldOf)
    .flatMap(([name, value]): Breakage[] => {
      const under = got.headers.filter(([key]) => fold(key) === fold(name)).map(([, text]) => text);
      if (!under.includes(value)) return ['the credential was lost'];
      return under.length > 1 ? ['the credential was doubled, or sent with another one'] : [];
    });
  return [...changed, ...credentialBreakages];
}

function hasCredential({ headers }: OriginRequest, policy: PolicyName): boolean {
  return messagePolicies[policy].injected
    .map(fieldOf)
    .some(([name, value]) => headers.some(([key, text]) => fold(key) === fold(name) && text === value));
}

function startOf({ method, target }: OriginRequest): string {
  return `${method} ${target}`;
}

function startWanted({ head }: ExpectedArrival, values: Values): string {
  return fill(head[0] ?? '', values).replace(/ HTTP\/1\.[01]$/, '');
}

function fieldOf(line: string): readonly [string, string] {
  const colon = line.indexOf(': ');
  return [line.slice(0, colon), line.slice(colon + 2)];
}

/** Folds a name as the most lenient origin does. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** The origin responds with `METHOD target`; the client must read these in the order of its requests. */
function isCrossed(expect: MessageExpectation, { responses }: MessageObservation, values: Values): boolean {
  const requested = expect.arrivals.map((wanted) => startWanted(wanted, values));
  const received = responses.filter(({ status, text }) => status === 200 && requested.includes(text));
  return received.some(
    ({ text }, i) => i > 0 && requested.indexOf(text) < requested.indexOf(received[i - 1]?.text ?? ''),
  );
}
