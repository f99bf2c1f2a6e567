// In what a row breaks a target so that it matters: the credential went with a request that must not leave, was lost, doubled or
// shown; bytes inside or behind a request became another one; a request became another one; an answer went to another request. None of these counts: another
// status, a missing X-Sallyport-Error, another order of fields, a refusal of what might have passed, a request without the credential
// that reached the host it names, pipelined requests that overtake each other upstream, a limit that is our own choice. Pure.
import { tracesOf } from '../../invariants/credential-scene.ts';
import type { OriginRequest } from '../../support/recording-origin.ts';
import { type MessageObservation, fill } from '../message/message-driver.ts';
import { type PolicyName, SECRET, messagePolicies } from '../message/message-policies.ts';
import type { ExpectedArrival, MessageExpectation, MessageRow } from '../message/message-script.ts';

export type Breakage =
  | 'the credential went with a request that must not leave'
  | 'bytes inside or behind a request became another one'
  | 'an origin got another request than was sent'
  | 'the credential was lost'
  | 'the credential was doubled, or stands beside another'
  | 'the credential went where it must not'
  | 'an origin got what ends at the proxy'
  | 'the client was shown the credential'
  | 'an answer went to another request'
  | 'the process died';

type Values = Readonly<Record<string, string>>;

/** How much is too much, and which token a proxy wants, is for each proxy to say. */
const ownChoices: ReadonlySet<string> = new Set(['head_too_large', 'uri_too_long', 'proxy_auth_required']);
const ownChoiceRows: ReadonlySet<string> = new Set(['F-21 too-far-ahead']);

export function breakages(row: MessageRow, seen: MessageObservation, values: Values): readonly Breakage[] {
  const { expect, script } = row;
  const policy = script.policy ?? 'bearer';
  const strays = seen.arrivals.filter(({ body }) => body !== undefined || expect.rest !== undefined);
  const found = new Set<Breakage>();
  let missing = 0;
  for (const wanted of expect.arrivals) {
    const at = strays.findIndex((got) => startOf(got) === startWanted(wanted, values));
    const [got] = at === -1 ? [] : strays.splice(at, 1);
    if (!got) missing += 1;
    else for (const one of arrivalBreakages(wanted, got, values, policy)) found.add(one);
  }
  for (const one of strayBreakages(row, strays, missing)) found.add(one);
  if ((expect.unseen ?? []).some((text) => seen.bytes.includes(fill(text, values))))
    found.add('an origin got what ends at the proxy');
  if (tracesOf(SECRET, [seen.transcript]).length > 0) found.add('the client was shown the credential');
  if (isCrossed(expect, seen, values)) found.add('an answer went to another request');
  return [...found];
}

function strayBreakages(
  { id, script, expect }: MessageRow,
  strays: readonly OriginRequest[],
  missing: number,
): Breakage[] {
  if (strays.length === 0) return [];
  if (missing > 0) return ['an origin got another request than was sent'];
  if (strays.some(({ target }) => /^\/(?:smuggled|evil)/.test(target)))
    return ['bytes inside or behind a request became another one'];
  const isOwnChoice = expect.responses.some(({ code = '' }) => ownChoices.has(code)) || ownChoiceRows.has(id);
  const isCredentialed = strays.some((got) => hasCredential(got, script.policy ?? 'bearer'));
  return isCredentialed && !isOwnChoice ? ['the credential went with a request that must not leave'] : [];
}

function arrivalBreakages(
  wanted: ExpectedArrival,
  got: OriginRequest,
  values: Values,
  policy: PolicyName,
): Breakage[] {
  const content = got.body?.content.toString('latin1') ?? '';
  const changed: Breakage[] =
    content === fill(wanted.body, values) ? [] : ['an origin got another request than was sent'];
  if (!wanted.head.includes('{AUTH}'))
    return got.head.includes(SECRET) ? [...changed, 'the credential went where it must not'] : changed;
  const fates = messagePolicies[policy].injected.map(fieldOf).flatMap(([name, value]): Breakage[] => {
    const under = got.headers.filter(([key]) => fold(key) === fold(name)).map(([, text]) => text);
    if (!under.includes(value)) return ['the credential was lost'];
    return under.length > 1 ? ['the credential was doubled, or stands beside another'] : [];
  });
  return [...changed, ...fates];
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

/** As the most forgiving origin would compare names. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** The origin answers `METHOD target`; the client must read these in the order in which it asked. */
function isCrossed(expect: MessageExpectation, { responses }: MessageObservation, values: Values): boolean {
  const asked = expect.arrivals.map((wanted) => startWanted(wanted, values));
  const reported = responses.filter(({ status, text }) => status === 200 && asked.includes(text));
  return reported.some(
    ({ text }, i) => i > 0 && asked.indexOf(text) < asked.indexOf(reported[i - 1]?.text ?? ''),
  );
}
