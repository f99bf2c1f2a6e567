// Reads and replaces a sandbox's proxy_config, with the preconditions of RFC 9110 §13.1. The target validates the document;
// here it is only unwrapped.
import { jsonResponse } from '../base/http/http-response.ts';
import { isObject } from '../base/json/json-document.ts';
import { type Issue, type Loc, type Parsed, prefixed, toLocKey } from '../base/schema.ts';
import { adminError, type AdminResponse, invalid, problemResponse } from './admin-errors.ts';
import type { AdminRequest } from './route.ts';
import type { AdminTarget, ShownConfig } from './target.ts';

export function showProxyConfig(request: AdminRequest, target: AdminTarget): AdminResponse {
  const shown = target.proxyConfig(request.sandbox);
  if (shown === undefined) return adminError('not_found');
  const known = tagsOf(request, 'if-none-match');
  if (known === MALFORMED) return adminError('malformed_etag');
  const fields = { ETag: shown.etag };
  if (known !== undefined && matchesWeakly(known, shown.etag)) return { status: 304, fields };
  const { document, revision, etag } = shown;
  return jsonResponse(200, { proxy_config: document, revision, etag }, fields);
}

export async function applyProxyConfig(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const known = tagsOf(request, 'if-match');
  const unwanted = tagsOf(request, 'if-none-match');
  if (known === MALFORMED || unwanted === MALFORMED) return adminError('malformed_etag');
  const wrapped = unwrap(request.body);
  if (!wrapped.ok) return invalid(wrapped.issues);
  const { document, loc } = wrapped.value;
  const found = unwanted === undefined ? undefined : target.proxyConfig(request.sandbox);
  if (unwanted !== undefined && found !== undefined && isUnwanted(found, unwanted))
    return stale(request, target);
  // What was found must still be in force when the turn of this write comes.
  const etag = wrapped.value.etag ?? found?.etag;
  const change = await target.applyProxyConfig(request.sandbox, document, {
    ...(known === undefined ? {} : { etags: strongTags(known) }),
    ...(etag === undefined ? {} : { etag }),
  });
  if (change.ok) {
    const { revision, warnings, etag } = change.value;
    const body = { revision, warnings: prefixed(warnings, loc) };
    return { ...jsonResponse(200, body, { ETag: etag }), revision };
  }
  return change.problem.kind === 'stale' ? stale(request, target) : problemResponse(change.problem, loc);
}

/** RFC 9110 §13.1.2; before the first document there is nothing that `*` could match. */
function isUnwanted({ revision, etag }: ShownConfig, tags: Tags): boolean {
  return tags === '*' ? revision > 0 : matchesWeakly(tags, etag);
}

function stale(request: AdminRequest, target: AdminTarget): AdminResponse {
  const shown = target.proxyConfig(request.sandbox);
  if (shown === undefined) return adminError('not_found');
  const detail = `Revision ${shown.revision} is in force, which is not the one that this request expects: read it with GET, then send its ETag as If-Match`;
  return adminError('stale', { detail, fields: { ETag: shown.etag } });
}

type Tags = readonly string[] | '*';
const MALFORMED = 'malformed';
const TAG_LIST = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*$/;

/** `*`, or the entity tags of the field, weak ones with their `W/`; undefined when the field is absent. */
function tagsOf(request: AdminRequest, name: string): Tags | typeof MALFORMED | undefined {
  const field = request.field(name);
  if (field === undefined || field === '*') return field;
  return TAG_LIST.test(field) ? (field.match(/(?:W\/)?"[^"]*"/g) ?? []) : MALFORMED;
}

/** Strong comparison: a weak tag never matches, so it is left out (RFC 9110 §8.8.3.2). */
function strongTags(tags: Tags): Tags {
  return tags === '*' ? tags : tags.filter((tag) => !tag.startsWith('W/'));
}

/** Weak comparison, for reads: tags that differ only in `W/` are the same. */
function matchesWeakly(tags: Tags, current: string): boolean {
  return tags === '*' || tags.some((tag) => tag.replace(/^W\//, '') === current.replace(/^W\//, ''));
}

type Unwrapped = { readonly document: unknown; readonly etag?: string | undefined; readonly loc: Loc };

/**
 * `{"proxy_config": document}`, else the body is the document. The response of GET may be sent back unchanged: its `etag`
 * is then what the write replaces, and its `revision` is ignored (after a restart numbers repeat, tags do not).
 */
function unwrap(body: unknown): Parsed<Unwrapped> {
  if (!isObject(body) || !Object.hasOwn(body, 'proxy_config'))
    return { ok: true, value: { document: body, loc: ['body'] } };
  const { proxy_config: document, etag, revision, ...rest } = body;
  const issues = Object.keys(rest).map(
    (key): Issue => ({
      loc: ['body', toLocKey(key)],
      msg: 'Only etag and revision may be beside proxy_config: remove this, or move it into proxy_config',
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
  return { ok: true, value: { document, etag, loc: ['body', 'proxy_config'] } };
}

const REVISION_ALONE =
  'Revision numbers repeat after a restart: send the etag that GET returned beside it, or neither of the two';
