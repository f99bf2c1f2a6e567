// One request from its head to its response and its record, in the order of trust: who calls, whether there is such a
// route, what is asked, and only then a body. Independent of sockets.
import type { Exchange } from '../base/http/http-server.ts';
import { parseJsonBody } from '../base/http/json-body.ts';
import { RequestError } from '../base/http/request-body.ts';
import type { RequestHead } from '../base/http/request-head.ts';
import { allowedMethods, type FindRoute } from '../base/http/route-table.ts';
import { describeBug, type Log } from '../base/log.ts';
import { isSandboxId } from '../base/sandbox-id.ts';
import { type Issue, type Parsed, toLocKey } from '../base/schema.ts';
import { type AccessGuard, tokenRequired } from './access-guard.ts';
import { adminError, type AdminErrorCode, type AdminResponse, invalid } from './admin-errors.ts';
import { type AdminRecord, toAdminRecord, type UnauthenticatedRecords } from './admin-records.ts';
import type { AdminRequest, Route } from './route.ts';
import type { AdminTarget } from './target.ts';
import type { Readers } from './records/record-stream.ts';
import type { WriteGate } from './write-gate.ts';

export type AdminScope = {
  readonly target: AdminTarget;
  readonly guard: AccessGuard;
  readonly findRoute: FindRoute<Route>;
  readonly writes: WriteGate;
  readonly readers: Readers;
  readonly bodyBytes: number;
  readonly log: Log;
  readonly unauthenticated: UnauthenticatedRecords;
  record(entry: AdminRecord): void;
  isRecordBlocked(): boolean;
};

/** A request whose body is not yet read. */
export type AdminExchange = Pick<
  Exchange,
  'head' | 'body' | 'requestId' | 'startedMs' | 'left' | 'draining' | 'closed'
> & {
  /** The address of the caller; undefined on a unix socket. */
  readonly client: string | undefined;
  /** Called as soon as the token was found to be right. */
  onAuthenticated(): void;
};

type Match = ReturnType<typeof findMatch>;

/** Leaves at most one record. Rejects only if recording throws. */
export async function handleRequest(scope: AdminScope, exchange: AdminExchange): Promise<AdminResponse> {
  const { head } = exchange;
  const match = findMatch(scope, head);
  const { token, rejection } = scope.guard.check(head);
  if (token === 'right') exchange.onAuthenticated();
  const response = rejection ?? (await serve(scope, exchange, match, token === 'right'));
  const isRead = head.method === 'GET' || head.method === 'HEAD';
  if (!isRead || token === 'wrong') {
    const { requestId, client, startedMs } = exchange;
    const action = match.route?.action ?? 'unknown';
    const start = { action, sandbox: match.sandbox, client, requestId, startedMs };
    const entry = toAdminRecord(start, response, performance.now());
    if (token === 'right') scope.record(entry);
    else scope.unauthenticated.add(entry);
  }
  return response;
}

/** Nothing in a path needs decoding or normalizing: a path with a byte that no route has matches none. */
function findMatch(scope: AdminScope, head: RequestHead) {
  const path = head.target.replace(/\?.*$/s, '');
  const isPlain =
    PLAIN_PATH.test(path) && !DOT_SEGMENT.test(path) && head.isOriginForm && head.host !== undefined;
  const { route, routes, params } = scope.findRoute(head.method, isPlain ? path : '');
  const { id = '' } = params;
  const named = route?.subject === 'path' && isSandboxId(id) ? id : undefined;
  return {
    route,
    /** The routes of the path, whatever their method. */
    routes,
    /** Undefined when the path names none, or what no sandbox can be called. */
    sandbox: route?.subject === 'default' ? 'default' : named,
    /** The path may be used without a token. */
    isOpen: (route === undefined ? routes : [route]).some(({ needsToken }) => !needsToken),
  };
}

const PLAIN_PATH = /^\/[A-Za-z0-9._~/-]*$/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;

async function serve(
  scope: AdminScope,
  exchange: AdminExchange,
  match: Match,
  isTrusted: boolean,
): Promise<AdminResponse> {
  if (!isTrusted && !match.isOpen) return tokenRequired;
  const { head, requestId } = exchange;
  const { route, sandbox } = match;
  if (route === undefined) return rejectRoute(match.routes);
  if (sandbox === undefined && route.subject === 'path') return adminError('not_found');
  const query = readQuery(head.target, route.query);
  if (!query.ok) return invalid(query.issues);
  if (head.hasUnknownExpectation) return adminError('expectation');
  // Ignored, it would be a write that its sender believes to be conditional.
  if (isWrite(route) && !route.hasEtag && CONDITIONS.some((name) => head.values(name).length > 0))
    return adminError('no_etag');
  const { left, closed, draining } = exchange;
  const stream = { readers: scope.readers, left, closed, draining };
  const request = {
    ...{ sandbox: sandbox ?? 'default', body: undefined, field: head.field },
    ...{ query: query.value, stream },
  };
  try {
    if (!isWrite(route)) return await route.handler(request, scope.target);
    return await write(scope, exchange, route, request);
  } catch (error) {
    scope.log.error({ ...describeBug(error), request: requestId }, 'admin request failed');
    return adminError('internal_error');
  }
}

async function write(
  scope: AdminScope,
  exchange: AdminExchange,
  route: Route,
  request: AdminRequest,
): Promise<AdminResponse> {
  if (scope.isRecordBlocked()) return RECORDS_BLOCKED;
  const hasDocument = route.method !== 'DELETE';
  const code = hasDocument ? checkContentType(exchange.head) : undefined;
  if (code !== undefined) return adminError(code);
  // The writes that create sandboxes have a share of their own.
  const share = route.subject === 'none' ? '' : request.sandbox;
  const rejection = scope.writes.enter(share, hasDocument ? exchange.head.contentLength : undefined);
  if (rejection !== undefined) return rejection;
  try {
    const document = hasDocument ? await readDocument(scope, exchange, share) : NO_DOCUMENT;
    if (!document.ok) return document.response;
    // Checked again: the body, or the writes before this one, may have taken long.
    return await scope.writes.run(() =>
      scope.isRecordBlocked()
        ? RECORDS_BLOCKED
        : route.handler({ ...request, body: document.value }, scope.target),
    );
  } finally {
    scope.writes.leave(share);
  }
}

type Document =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly response: AdminResponse };

async function readDocument(scope: AdminScope, { body }: AdminExchange, share: string): Promise<Document> {
  try {
    const bytes = await body.read(scope.bodyBytes);
    const rejection = scope.writes.admitDocument(share, bytes.length);
    if (rejection !== undefined) return { ok: false, response: rejection };
    const parsed = parseJsonBody(bytes, false);
    if (parsed.ok) return parsed;
    return { ok: false, response: invalid([{ loc: ['body'], msg: parsed.msg, type: 'json_invalid' }]) };
  } catch (error) {
    if (error instanceof RequestError) return { ok: false, response: adminError(error.kind) };
    throw error;
  }
}

/** Undefined when the fields declare what a document must be sent as. */
function checkContentType(head: RequestHead): AdminErrorCode | undefined {
  const [type, ...more] = head.values('content-type');
  const parameters = more.length > 0 ? undefined : JSON_TYPE.exec(type ?? '')?.[1];
  const charsets = [...(parameters ?? '').matchAll(/;[ \t]*charset="?([^";\s]*)/gi)];
  const isUtf8 = charsets.every(([, charset]) => charset?.toLowerCase() === 'utf-8');
  if (parameters === undefined || !isUtf8) return 'content_type';
  return head.values('content-encoding').length > 0 ? 'content_encoding' : undefined;
}

const JSON_TYPE = /^application\/json((?:[ \t]*;[ \t]*[a-z0-9_-]+=(?:"[^"\\]*"|[^\s";,]+))*)[ \t]*;?$/i;

function isWrite({ method }: Route): boolean {
  return method !== 'GET';
}

function rejectRoute(routes: readonly Route[]): AdminResponse {
  if (routes.length === 0) return adminError('no_route');
  return adminError('method', { fields: { Allow: allowedMethods(routes) } });
}

/** `known` are the parameters of the route. */
function readQuery(target: string, known: readonly string[]): Parsed<ReadonlyMap<string, string>> {
  const [, text = ''] = /\?(.*)$/s.exec(target) ?? [];
  const issues: Issue[] = [];
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    const loc = ['query', toLocKey(name)];
    if (!known.includes(name))
      issues.push({ loc, msg: 'Unknown query parameter: remove it', type: 'extra_forbidden' });
    else if (values.has(name)) issues.push({ loc, msg: 'Repeated: send it once', type: 'value_error' });
    else values.set(name, value);
  }
  return issues.length > 0 ? { ok: false, issues } : { ok: true, value: values };
}

const NO_DOCUMENT: Document = { ok: true, value: undefined };
const CONDITIONS: readonly string[] = ['if-match', 'if-none-match'];
const RECORDS_BLOCKED: AdminResponse = adminError('records_blocked', { waitMs: 1000 });
