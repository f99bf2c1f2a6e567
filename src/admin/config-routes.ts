// Reading and replacing a sandbox's proxy_config. What the document says is judged by the target; here it is only unwrapped.
import { type Issue, type Loc, toLocKey } from '../base/schema.ts';
import { type AdminResponse, invalid, ok, refused } from './answer.ts';
import { matchesWeakly, parseTagList, strongTags, type TagList } from './entity-tag.ts';
import { sendProblem } from './problem-answer.ts';
import type { AdminRequest } from './route.ts';
import { noSuchSandbox } from './sandbox-routes.ts';
import type { AdminTarget, ShownConfig } from './target.ts';

export function showProxyConfig(request: AdminRequest, target: AdminTarget): AdminResponse {
  const shown = target.proxyConfig(request.sandbox);
  if (shown === undefined) return noSuchSandbox;
  const known = tagsOf(request, 'if-none-match');
  if (known?.ok === false) return malformedTags('If-None-Match');
  const fields = { ETag: shown.etag };
  if (known !== undefined && matchesWeakly(known.tags, shown.etag)) return { status: 304, fields };
  return ok({ proxy_config: shown.document, revision: shown.revision, etag: shown.etag }, { fields });
}

export async function applyProxyConfig(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const known = tagsOf(request, 'if-match');
  if (known?.ok === false) return malformedTags('If-Match');
  const unwanted = tagsOf(request, 'if-none-match');
  if (unwanted?.ok === false) return malformedTags('If-None-Match');
  const wrapped = unwrap(request.body);
  if (!wrapped.ok) return invalid(wrapped.issues);
  const { document, loc } = wrapped;
  const found = unwanted === undefined ? undefined : target.proxyConfig(request.sandbox);
  if (unwanted !== undefined && found !== undefined && isUnwanted(found, unwanted.tags))
    return stale(request, target);
  // What was found is what must still be there when the turn of this write comes.
  const etag = wrapped.etag ?? found?.etag;
  const change = await target.applyProxyConfig(request.sandbox, document, {
    ...(known === undefined ? {} : { etags: strongTags(known.tags) }),
    ...(etag === undefined ? {} : { etag }),
  });
  if (change.ok) {
    const { revision, warnings, etag } = change.value;
    const inRequest = warnings.map((issue) => ({ ...issue, loc: [...loc, ...issue.loc] }));
    return ok({ revision, warnings: inRequest }, { fields: { ETag: etag }, revision });
  }
  return change.problem.kind === 'stale' ? stale(request, target) : sendProblem(change.problem, loc);
}

/** RFC 9110 §13.1.2; before the first document there is nothing that `*` could match. */
function isUnwanted({ revision, etag }: ShownConfig, tags: readonly string[] | '*'): boolean {
  return tags === '*' ? revision > 0 : matchesWeakly(tags, etag);
}

function stale(request: AdminRequest, target: AdminTarget): AdminResponse {
  const shown = target.proxyConfig(request.sandbox);
  if (shown === undefined) return noSuchSandbox;
  const detail = `Revision ${shown.revision} is in force, which is not the one that this request expects: read it with GET, then send its ETag as If-Match`;
  return refused({ status: 412, reason: 'stale', detail, fields: { ETag: shown.etag } });
}

function tagsOf(request: AdminRequest, name: string): TagList | undefined {
  const field = request.field(name);
  return field === undefined ? undefined : parseTagList(field);
}

function malformedTags(name: string): AdminResponse {
  const detail = `${name} should be * or a list of entity tags in double quotes, as ETag gave them`;
  return refused({ status: 400, reason: 'malformed_etag', detail });
}

type Unwrapped =
  | {
      readonly ok: true;
      readonly document: unknown;
      readonly etag: string | undefined;
      readonly loc: Loc;
    }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/**
 * `{"proxy_config": document}`, else the body is the document. What GET answered may be sent back as it is: `etag` then
 * says what is to be replaced, and `revision` is passed over (numbers come again after a restart, tags do not).
 */
function unwrap(body: unknown): Unwrapped {
  if (!isObject(body) || !Object.hasOwn(body, 'proxy_config'))
    return { ok: true, document: body, etag: undefined, loc: ['body'] };
  const { proxy_config: document, etag, revision, ...rest } = body;
  const issues = Object.keys(rest).map(
    (key): Issue => ({
      loc: ['body', toLocKey(key)],
      msg: 'Beside proxy_config only etag and revision may stand: remove it, or move it into proxy_config',
      type: 'extra_forbidden',
    }),
  );
  if (etag !== undefined && typeof etag !== 'string') {
    const msg = 'Input should be a string: the etag that this request expects to replace';
    return { ok: false, issues: [...issues, { loc: ['body', 'etag'], msg, type: 'string_type' }] };
  }
  if (revision !== undefined && etag === undefined)
    issues.push({ loc: ['body', 'revision'], msg: REVISION_ALONE, type: 'value_error' });
  if (issues.length > 0) return { ok: false, issues };
  return { ok: true, document, etag, loc: ['body', 'proxy_config'] };
}

const REVISION_ALONE =
  'A number may come again after a restart: send the etag that GET answered beside it, or neither of the two';

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
