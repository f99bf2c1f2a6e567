// Whether an answer is one that the document promises, and the database is as the answer says. It must not know how the
// request was thought of.
import type { Asked } from '../../support/platform-api.ts';
import type { ChangeLog } from './change-log.ts';
import type { Operation } from './document.ts';
import { canary } from './schema-variants.ts';

export type Probe = {
  readonly what: string;
  readonly operation: Operation;
  /** What the document says of the request; undefined: that is not for it to say. */
  readonly isValid: boolean | undefined;
  /** The path may be that of another route, or of none. */
  readonly isElsewhere?: boolean;
};

type Issue = { readonly loc: readonly unknown[]; readonly type: string };
type Happened = Awaited<ReturnType<ChangeLog['take']>>;

/** What is wrong with the answer; nothing is as it should be. */
export function judge(probe: Probe, response: Asked, happened: Happened): readonly string[] {
  const found = [
    ...judgeForm(probe, response),
    ...judgeTruth(probe, response),
    ...judgeEffects(probe, response, happened),
  ];
  if (isRepeated(probe, response)) found.push('it repeats what was sent');
  return found.map(
    (complaint) =>
      `${probe.operation.title}, ${probe.what}: ${complaint}: ${response.status} ${response.text.slice(0, 400)}`,
  );
}

/** What is valid and there already is named: the sentence is one that clients know. */
function isRepeated({ isValid }: Probe, { status, text }: Asked): boolean {
  return status >= 400 && text.includes(canary) && !(status === 409 && isValid !== false);
}

/** Shape and status, as they are documented. */
function judgeForm(
  { operation, isElsewhere }: Probe,
  { status, headers, text, body }: Asked,
): readonly string[] {
  if (status >= 500) return ['a fault of the platform'];
  if (isElsewhere === true)
    return status < 300 || typeof body?.detail === 'string' || status === 422 ? [] : ['no detail'];
  const documented = operation.responses.get(status);
  if (documented === undefined) return ['a status that the document does not name'];
  const type = headers.get('content-type')?.replace(/ *;.*/, '') ?? '';
  if (text === '') return documented.types.length === 0 ? [] : ['no body where there should be one'];
  if (!documented.types.includes(type)) return [`the type ${type}, which the document does not name`];
  if (documented.isValid === undefined || documented.isValid(body)) return [];
  return [`a body that the document does not describe (${JSON.stringify(documented.isValid.errors?.[0])})`];
}

/** Valid is what the document calls so. */
function judgeTruth({ isValid, isElsewhere }: Probe, { status, body }: Asked): readonly string[] {
  if (status !== 422) return isValid === false && status < 400 ? ['it should be refused'] : [];
  const issues: readonly Issue[] = body?.detail ?? [];
  const found: string[] = [];
  if (!issues.every(({ loc: [first] }) => PARTS.has(first)))
    found.push('an issue without its part of the request');
  if (isValid === true && isElsewhere !== true && !issues.every(isBeyond))
    found.push('it should not be refused');
  return found;
}

// Of an issue behind the hundredth there is only the count.
const PARTS: ReadonlySet<unknown> = new Set(['path', 'query', 'body', 'header', undefined]);

/** What no schema says: what the database can keep, which times there are, what a cursor was given out for. */
function isBeyond({ loc, type }: Issue): boolean {
  if (type === 'string_unicode') return true;
  return ['cursor', 'expires_at', 'time', 'start_time', 'end_time'].includes(String(loc.at(-1)));
}

/** Refused: nothing is written but that it was. Served: that it was, once. */
function judgeEffects(
  { operation, isElsewhere }: Probe,
  { status }: Asked,
  { changes, events }: Happened,
): readonly string[] {
  const found: string[] = [];
  if (status >= 400 && changes.length > 0) found.push(`it changed something (${changes.join(', ')})`);
  const { tracking } = operation.route;
  if (isElsewhere === true) return found;
  const wanted = 'operation' in tracking ? [tracking.operation] : [];
  if (JSON.stringify(events.map((event) => event.operation)) !== JSON.stringify(wanted))
    found.push(`other events than there should be (${JSON.stringify(events)})`);
  for (const { record } of events) {
    const { operation_succeeded, enrichments } = JSON.parse(record);
    if (operation_succeeded !== status < 400 || enrichments.response_status_code !== status)
      found.push(`an event of something else (${record})`);
    // A path, and where a request came from, are what an event is to tell.
    const { request_path: _, x_forwarded_for: __, ...rest } = enrichments;
    if (JSON.stringify(rest).includes(canary)) found.push('an event that repeats what was sent');
  }
  return found;
}
