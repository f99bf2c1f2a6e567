// Compares the expectation of a row with what was observed; returns the differences as texts, none if the row passed. Pure.
import { tracesOf } from '../../invariants/credential-scene.ts';
import type { OriginRequest } from '../../support/recording-origin.ts';
import { type MessageObservation, fill } from './message-driver.ts';
import { SECRET } from './message-policies.ts';
import type { ExpectedArrival, MessageExpectation } from './message-script.ts';

type Values = Readonly<Record<string, string>>;
type Row = { readonly expect: MessageExpectation };

/** Each text begins with its subject: `arrival`, `bytes`, `response`, `end`, `record`, `leak`, `missing`. */
export function violations({ expect }: Row, seen: MessageObservation, values: Values): string[] {
  return [
    ...arrivalViolations(expect, seen, values),
    ...responseViolations(expect, seen, values),
    ...recordViolations(expect, seen),
    ...tracesOf(SECRET, [seen.transcript]).map(() => 'leak: the client received the secret'),
    ...seen.missing.map((what) => `missing: no ${what}`),
  ];
}

function arrivalViolations(expect: MessageExpectation, seen: MessageObservation, values: Values): string[] {
  const found: string[] = [];
  const whole = seen.arrivals.filter(({ body }) => body !== undefined || expect.rest !== undefined);
  const wanted = expect.arrivals.map((arrival) => written(arrival, values));
  const got = whole.map(asWritten);
  if (JSON.stringify(got) !== JSON.stringify(wanted))
    found.push(`arrival: ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`);
  const begun = seen.arrivals.length - whole.length;
  if (begun > (expect.mayBegin ? 1 : 0)) found.push(`arrival: ${begun} incomplete requests`);
  if (wanted.length === 0 && !expect.mayBegin && seen.bytes !== '')
    found.push(`bytes: ${JSON.stringify(seen.bytes.slice(0, 200))}`);
  if (expect.apart && new Set(whole.map(({ connection }) => connection)).size < whole.length)
    found.push('arrival: on the connection that may have a body unread');
  for (const text of expect.unseen ?? [])
    if (seen.bytes.includes(fill(text, values))) found.push(`bytes: ${JSON.stringify(text)} was seen`);
  return found;
}

function written({ head, body, framing }: ExpectedArrival, values: Values): readonly string[] {
  return [fill([...head, '', ''].join('\r\n'), values), framing, fill(body, values)];
}

function asWritten({ head, body }: OriginRequest): readonly string[] {
  return [head, body?.framing ?? 'none', body?.content.toString('latin1') ?? ''];
}

function responseViolations(expect: MessageExpectation, seen: MessageObservation, values: Values): string[] {
  const wanted = expect.responses.map(({ status, code = '' }) => `${status} ${code}`.trim());
  const got = seen.responses.map(({ status, code = '' }) => `${status} ${code}`.trim());
  const found: string[] = [];
  if (String(got) !== String(wanted)) found.push(`response:  ${String(got)} instead of ${String(wanted)}`);
  for (const text of crossed(expect, seen, values)) found.push(`response:  ${text}`);
  if (seen.rest !== (expect.rest ?? '')) found.push(`response:  ${JSON.stringify(seen.rest)} after the last`);
  if (expect.ends && !seen.isEnded) found.push('end: the connection stays open');
  return found;
}

/** The responses that belong to another request. */
function crossed(
  expect: MessageExpectation,
  { responses }: MessageObservation,
  values: Values,
): readonly string[] {
  let requests = 0;
  return expect.responses.flatMap(({ status, code, body }, i) => {
    const text = responses[i]?.text;
    if (code !== undefined || status < 200) return [];
    const start = fill(expect.arrivals[requests++]?.head[0] ?? '', values);
    const own = body ?? (start.startsWith('HEAD ') ? '' : start.replace(/ HTTP\/1\.[01]$/, ''));
    return text === undefined || text === own ? [] : [`${JSON.stringify(text)} instead of ${own}`];
  });
}

function recordViolations(expect: MessageExpectation, { records }: MessageObservation): string[] {
  if (!records) return [];
  const wanted = expect.records ?? recordsOf(expect);
  const got = records.map(({ outcome, reason = '' }) => `${String(outcome)} ${String(reason)}`.trim());
  return String(got) === String(wanted) ? [] : [`record: ${String(got)} instead of ${String(wanted)}`];
}

function recordsOf({ responses, arrivals }: MessageExpectation): readonly string[] {
  let requests = 0;
  return responses
    .filter(({ status }) => status >= 200 || status === 101)
    .map(({ status, code }) => {
      if (code !== undefined)
        return `${status >= 500 && status !== 501 && status !== 505 ? 'failed' : 'refused'} ${code}`;
      const isInjected = arrivals[requests++]?.head.includes('{AUTH}') ?? false;
      return isInjected ? 'injected' : 'forwarded';
    });
}
