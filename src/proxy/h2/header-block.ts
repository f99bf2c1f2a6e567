// HTTP/2 header lists as heads, and back. A list is checked as a list, with the grammar of HTTP/1.1, and becomes the same kind
// of head: one plan, one mask and one gate read both versions. Pure, except for a symbol of node:http2.
import { sensitiveHeaders } from 'node:http2';
import { readConnectionFields } from '../../http1/connection-fields.ts';
import { type HeadError, isHeadError } from '../../http1/head-error.ts';
import { Field, isExactly } from '../../http1/field-name.ts';
import type { HeadLimits, RequestHead, ResponseHead } from '../../http1/head-parser.ts';
import { writeRequestHead, writeResponseHead } from '../../http1/written-head.ts';
import { parseAuthority } from '../../policy/authority/authority.ts';
import { type Injection, markReplaced } from '../gate/inject.ts';
import { type Mask, maskResponseHead } from '../mask/mask.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import { type RequestPlan, refusalOfError } from '../gate/request-plan.ts';
import { defaultPort } from '../gate/request-target.ts';
import { markAsking } from '../mask/scrub.ts';
import type { HeaderList } from '../upstream/h2-session.ts';

/** A head and the texts of its fields: the same bytes twice. */
export type RequestBlock = { readonly head: RequestHead; readonly fields: HeaderList };
export type ResponseBlock = { readonly head: ResponseHead; readonly fields: HeaderList };

/** The request of a header list (RFC 9113 §8.3.1) as a head, or why it is rejected. */
export function parseRequestList(list: HeaderList, limits: HeadLimits): RequestBlock | Refusal {
  const pseudo: Pseudo = {};
  // In the head, `host` is the first field line.
  const fields: string[] = ['host', ''];
  const hosts: string[] = [];
  for (let i = 0; i + 1 < list.length; i += 2) {
    const [name = '', value = ''] = [list[i], list[i + 1]];
    if (name.startsWith(':')) pseudo[name] = value;
    else if (name === 'host') hosts.push(value);
    else fields.push(name, value);
  }
  const start = startOf(pseudo);
  if (isRefusal(start)) return start;
  const host = hostOf(pseudo[':authority'], hosts);
  if (typeof host !== 'string') return host;
  fields[1] = host;
  const head = writeRequestHead(start.method, start.path, fields, limits);
  return isHeadError(head) ? refusalOfError(head) : { head, fields };
}

type Pseudo = Record<string, string | undefined>;
const known: ReadonlySet<string> = new Set([':method', ':path', ':scheme', ':authority']);

function startOf(pseudo: Pseudo): { method: string; path: string } | Refusal {
  const { ':method': method, ':path': path, ':scheme': scheme } = pseudo;
  if (method === 'CONNECT') return refuse('method_refused', 'CONNECT');
  for (const name in pseudo) if (!known.has(name)) return refuse('malformed_request', 'pseudo_fields');
  if (!method || !path) return refuse('malformed_request', 'pseudo_fields');
  if (scheme !== 'https') return refuse('target_invalid', 'scheme');
  // Only origin-form and the asterisk are valid here; the plan would accept absolute-form too.
  if (!path.startsWith('/') && path !== '*')
    return refuse('target_invalid', 'neither origin-form nor asterisk');
  return { method, path };
}

/** The authority, on which `:authority` and `host` must agree. Gateways of HTTP/1.1 clients send `host` alone. */
function hostOf(authority: string | undefined, hosts: readonly string[]): string | Refusal {
  const [host] = hosts;
  if (hosts.length > 1) return refuse('host_invalid', 'more than one');
  if (authority === undefined) return host ?? refuse('host_invalid', 'missing');
  if (host !== undefined && canonical(host) !== canonical(authority)) return refuse('host_mismatch');
  return authority;
}

function canonical(text: string): string {
  const authority = parseAuthority(text, defaultPort('https'));
  return typeof authority === 'string' ? text : authority.text;
}

/**
 * The list that is sent upstream: the fields that the plan keeps, then the injected ones, never indexed. `isScrubbed`: the
 * response body will be searched.
 */
export function outgoingRequestList(
  plan: RequestPlan,
  fields: HeaderList,
  injection: Injection | undefined,
  isScrubbed = false,
): HeaderList {
  const { head, target, drop } = plan;
  if (isScrubbed) markAsking(head, drop);
  if (injection) markReplaced(head, injection, drop);
  const [, host = ''] = fields;
  const list = [':method', head.method, ':scheme', plan.scheme, ':authority', host, ':path', target.path];
  for (let i = 1; i < head.fields.count; i += 1)
    if (drop[i] !== 1 || isTrailersWish(head, i)) list.push(fields[2 * i] ?? '', fields[2 * i + 1] ?? '');
  if (!injection) return list;
  list.push(...injection.list);
  // RFC 7541 §7.1.3: with an index, another writer on the connection could find out the value by the compressed size.
  return Object.assign(list, { [sensitiveHeaders]: injection.listed });
}

/** `te: trailers`, the only TE of HTTP/2 (RFC 9113 §8.2.2); gRPC needs it. */
function isTrailersWish({ bytes, fields }: RequestHead, i: number): boolean {
  return fields.id(i) === Field.te && isExactly(bytes, fields.valueStart(i), fields.valueEnd(i), 'trailers');
}

/** The header list of a response, interim or final, as a head. */
export function parseResponseList(list: HeaderList, limits: HeadLimits): ResponseBlock | HeadError {
  let status = '';
  const fields: string[] = [];
  for (let i = 0; i + 1 < list.length; i += 2) {
    const [name = '', value = ''] = [list[i], list[i + 1]];
    if (name === ':status') status = value;
    else fields.push(name, value);
  }
  const head = writeResponseHead(status, fields, limits);
  return isHeadError(head) ? head : { head, fields };
}

/** Trailer fields as the fields of a head. */
export function parseTrailerList(list: HeaderList, limits: HeadLimits): ResponseBlock | HeadError {
  return parseResponseList([':status', '200', ...list], limits);
}

/** The response fields for the client, masked; without `Alt-Svc`, which would lead it around the proxy. */
export function outgoingFields(
  { head, fields: texts }: ResponseBlock,
  mask: Mask | undefined,
  isLeftOut: (id: number) => boolean = isAltSvc,
): HeaderList {
  const connection = readConnectionFields(head);
  const drop = isHeadError(connection) ? undefined : connection.drop;
  const isMasked = mask !== undefined && maskResponseHead(head, mask);
  const { bytes, fields } = head;
  const list: string[] = [];
  for (let i = 0; i < fields.count; i += 1) {
    if (drop?.[i] === 1 || isLeftOut(fields.id(i))) continue;
    if (!isMasked) list.push(texts[2 * i] ?? '', texts[2 * i + 1] ?? '');
    else {
      const name = bytes.toString('latin1', fields.nameStart(i), fields.nameEnd(i));
      list.push(name, bytes.toString('latin1', fields.valueStart(i), fields.valueEnd(i)));
    }
  }
  return list;
}

function isAltSvc(id: number): boolean {
  return id === Field.altSvc;
}

/** Fields that describe the message must not be trailers (RFC 9110 §6.5.1). */
export function isNoTrailer(id: number): boolean {
  return isAltSvc(id) || id === Field.contentLength || id === Field.transferEncoding || id === Field.host;
}

/** The form in which node:http2 takes trailers and interim heads: by name, with one value or several. */
export function byName(list: HeaderList): Record<string, string[]> {
  const fields: Record<string, string[]> = Object.create(null);
  for (let i = 0; i < list.length; i += 2) (fields[list[i] ?? ''] ??= []).push(list[i + 1] ?? '');
  return fields;
}
