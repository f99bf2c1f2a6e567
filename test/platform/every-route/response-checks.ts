// Checks that a response is documented and that the database agrees with it.
import { UNSTORABLE } from '../../../src/base/http/json-body.ts';
import type { Asked } from '../../support/platform-api.ts';
import type { ChangeLog } from './change-log.ts';
import type { Operation } from './document.ts';
import { canary } from './schema-variants.ts';

export type Probe = {
  readonly what: string;
  readonly operation: Operation;
  /** Whether the document allows the request; undefined: it does not say. */
  readonly isValid: boolean | undefined;
  /** The path may be one of another route, or of no route. */
  readonly isElsewhere?: boolean;
};

type Issue = { readonly loc: readonly unknown[]; readonly msg: string; readonly type: string };
type Happened = Awaited<ReturnType<ChangeLog['take']>>;

/** The defects of the response; empty when there is none. */
export function checkResponse(probe: Probe, response: Asked, happened: Happened): readonly string[] {
  const found = [
    ...checkFormat(probe, response),
    ...checkValidity(probe, response),
    ...checkEffects(probe, response, happened),
  ];
  if (isRepeated(probe, response)) found.push('it repeats the input');
  return found.map(
    (complaint) =>
      `${probe.operation.title}, ${probe.what}: ${complaint}: ${response.status} ${response.text.slice(0, 400)}`,
  );
}

/** A conflict with valid input may name it: clients parse that message. */
function isRepeated({ isValid }: Probe, { status, text }: Asked): boolean {
  return status >= 400 && text.includes(canary) && !(status === 409 && isValid !== false);
}

/** Whether status, type and body are documented. */
function checkFormat(
  { operation, isElsewhere }: Probe,
  { status, headers, text, body }: Asked,
): readonly string[] {
  if (status >= 500 && !operation.responses.has(status)) return ['an internal error'];
  if (isElsewhere === true) return status < 300 || status === 422 || hasDetail(body) ? [] : ['no detail'];
  const documented = operation.responses.get(status);
  if (documented === undefined) return ['an undocumented status'];
  const type = headers.get('content-type')?.replace(/ *;.*/, '') ?? '';
  if (text === '') return documented.types.length === 0 ? [] : ['a missing body'];
  if (!documented.types.includes(type)) return [`the undocumented type ${type}`];
  if (documented.isValid === undefined || documented.isValid(body)) return [];
  return [`an undocumented body (${JSON.stringify(documented.isValid.errors?.[0])})`];
}

/** A text, or the object of `sandboxErrors`: the path may be one of a route with either format. */
function hasDetail(body: Asked['body']): boolean {
  return [body?.detail, body?.detail?.message].some((one) => typeof one === 'string');
}

/** Whether the request was accepted or rejected as the document says. */
function checkValidity({ isValid, isElsewhere }: Probe, { status, body }: Asked): readonly string[] {
  if (status !== 422) return isValid === false && status < 400 ? ['an invalid request was accepted'] : [];
  const { detail: issues = [] }: { readonly detail?: readonly Issue[] } = body ?? {};
  if (!Array.isArray(issues)) return ['a 422 without issues'];
  const found: string[] = [];
  if (!issues.every(({ loc: [first] }) => PARTS.has(first)))
    found.push('an issue that names no part of the request');
  if (isValid === true && isElsewhere !== true && !issues.every(isBeyondSchema))
    found.push('a valid request was rejected');
  return found;
}

// Undefined: beyond the hundredth issue there is only a count.
const PARTS: ReadonlySet<unknown> = new Set(['path', 'query', 'body', 'header', undefined]);

/**
 * Rules that no schema expresses: text that the database can store, valid times, the list that a cursor belongs to, members
 * of a list that must differ, the rules of the proxy.
 */
function isBeyondSchema({ loc, msg, type }: Issue): boolean {
  // The type of an issue is not the same in every error format, its message is.
  if (type === 'string_unicode' || msg === UNSTORABLE || msg === 'This key is repeated') return true;
  if (['proxy_config', 'proxy_profile_id', 'env_vars'].includes(String(loc[1]))) return true;
  // Fields of deployments that depend on their source, and lists of what they run.
  if (/^(?:This field cannot be changed$|Only deployments from |A deployment from )/.test(msg)) return true;
  if (['secrets', 'secret_references', 'source_config'].includes(String(loc[1]))) return true;
  // Multiples of 60, and names of labels.
  if (['idle_ttl_seconds', 'delete_after_stop_seconds', 'labels'].includes(String(loc[1]))) return true;
  // Bytes of a value, which schemas of any JSON do not limit.
  if (/^Input must have at most \d+ bytes as JSON$/.test(msg)) return true;
  // What feedback is about: one of three fields.
  if (msg.startsWith('Input must name what the feedback is about')) return true;
  // Of a destination: its endpoint, what that needs, and options that are not supported.
  if (['config', 'credentials'].includes(String(loc[1]))) return true;
  // Of an export: members of a list that differ.
  if (msg === 'Input must name each column once') return true;
  // The filter language.
  if (/^(?:trace_|tree_|search_)?filter$/.test(String(loc[1]))) return true;
  return ['cursor', 'expires_at', 'time', 'start_time', 'end_time'].includes(String(loc.at(-1)));
}

/** A rejected request changes nothing; every tracked request leaves exactly one event. */
function checkEffects(
  { operation, isElsewhere }: Probe,
  { status, body }: Asked,
  { changes, events }: Happened,
): readonly string[] {
  const found: string[] = [];
  if (status >= 400 && changes.length > 0) found.push(`it changed something (${changes.join(', ')})`);
  const { tracking } = operation.route;
  if (isElsewhere === true) return found;
  const wanted = 'operation' in tracking ? [tracking.operation] : [];
  if (JSON.stringify(events.map((event) => event.operation)) !== JSON.stringify(wanted))
    found.push(`unexpected events (${JSON.stringify(events)})`);
  for (const { record } of events) {
    const { operation_succeeded, enrichments } = JSON.parse(record);
    if (operation_succeeded !== status < 400 || enrichments.response_status_code !== status)
      found.push(`an event that does not match the response (${record})`);
    // An event may contain the path and the origin of the request.
    const { request_path: _, x_forwarded_for: __, resource_names: names = [], ...rest } = enrichments;
    const others = (names as readonly string[]).filter(
      (name) => status >= 400 || !(name === body?.name || isNamedByPath(operation, name)),
    );
    if (JSON.stringify([rest, others]).includes(canary)) found.push('an event that repeats the input');
  }
  return found;
}

/** Of a resource with a name in the place of an id, the event of a success contains it. */
function isNamedByPath({ parameters }: Operation, name: string): boolean {
  return parameters.some((one) => one.in === 'path' && one.name === 'name' && one.isValid(name));
}
