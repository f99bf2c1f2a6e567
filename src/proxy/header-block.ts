// HTTP/2 header lists as the heads that the rest of the house knows, and back. A list is written as an HTTP/1.1 head
// and read by the same strict parser, so that one grammar judges both versions, and what it refuses in one it refuses
// in the other. Pure but for the name of a symbol.
import { sensitiveHeaders } from 'node:http2';
import { readConnectionFields } from '../http1/connection-fields.ts';
import { type HeadFault, faults, isFault } from '../http1/fault.ts';
import { Field, isExactly } from '../http1/field-name.ts';
import {
  type HeadLimits,
  type RequestHead,
  type ResponseHead,
  parseRequestHead,
  parseResponseHead,
} from '../http1/head-parser.ts';
import { parseAuthority } from '../policy/authority.ts';
import { type Injection, markReplaced } from './inject.ts';
import { type Mask, maskResponseHead } from './mask.ts';
import { type Refusal, refuse } from './refusal.ts';
import { type RequestPlan, refusalOfFault } from './request-plan.ts';
import { defaultPort } from './request-target.ts';

/** Name, value, name, value, … as node:http2 gives and takes them. */
export type HeaderList = readonly string[];

/** The request that a header list states (RFC 9113 §8.3.1), as a head, or why it is none. */
export function parseRequestList(list: HeaderList, limits: HeadLimits): RequestHead | Refusal {
  const { pseudo, fields } = split(list);
  if (pseudo[':method'] === 'CONNECT') return refuse('method_refused', 'CONNECT');
  const { ':method': method, ':path': path, ':scheme': scheme, ':authority': authority, ...others } = pseudo;
  if (!method || !path || Object.keys(others).length > 0) return refuse('malformed_request', 'pseudo_fields');
  if (scheme !== 'https') return refuse('target_invalid', 'scheme');
  // Nothing but origin-form and the asterisk has a meaning here; the parser below knows absolute-form too.
  if (!path.startsWith('/') && path !== '*')
    return refuse('target_invalid', 'neither origin-form nor asterisk');
  const host = hostOf(authority, fields);
  if (typeof host !== 'string') return host;
  const lines = fields.filter(([name]) => name !== 'host');
  const head = parse(parseRequestHead, `${method} ${path} HTTP/1.1`, [['host', host], ...lines], limits);
  return isFault(head) ? refusalOfFault(head) : head;
}

/** The authority that both ways of naming it agree on; HTTP/1.1 clients behind a gateway send `host` alone. */
function hostOf(authority: string | undefined, fields: readonly Pair[]): string | Refusal {
  const hosts = fields.filter(([name]) => name === 'host').map(([, value]) => value);
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

/** The list that goes to the host: the fields that the plan keeps, then the injected ones, never indexed. */
export function outgoingRequestList(plan: RequestPlan, injection: Injection | undefined): HeaderList {
  const { head, target, drop } = plan;
  const { bytes, fields } = head;
  if (injection) markReplaced(head, injection, drop);
  const list: string[] = [
    ':method',
    head.method,
    ':scheme',
    plan.scheme,
    ':authority',
    '',
    ':path',
    target.path,
  ];
  for (let i = 0; i < fields.count; i += 1) {
    const value = (): string => bytes.toString('latin1', fields.valueStart(i), fields.valueEnd(i));
    if (fields.id(i) === Field.host) list[5] = value();
    else if (drop[i] !== 1 || isTrailersWish(head, i))
      list.push(bytes.toString('latin1', fields.nameStart(i), fields.nameEnd(i)), value());
  }
  if (!injection) return list;
  list.push(...injection.list);
  // RFC 7541 §7.1.3: an index would let whoever writes beside it find out the value by the size of what is sent.
  return Object.assign(list, { [sensitiveHeaders]: injection.list.filter((_, i) => i % 2 === 0) });
}

/** `te: trailers`, the one `TE` that HTTP/2 has (RFC 9113 §8.2.2); gRPC needs it. */
function isTrailersWish({ bytes, fields }: RequestHead, i: number): boolean {
  return fields.id(i) === Field.te && isExactly(bytes, fields.valueStart(i), fields.valueEnd(i), 'trailers');
}

/** An answer's header list, interim or final, as a head. */
export function parseResponseList(list: HeaderList, limits: HeadLimits): ResponseHead | HeadFault {
  const { pseudo, fields } = split(list);
  return parse(parseResponseHead, `HTTP/1.1 ${pseudo[':status'] ?? ''} `, fields, limits);
}

/** The fields behind a body as if they stood in a head. */
export function parseTrailerList(list: HeaderList, limits: HeadLimits): ResponseHead | HeadFault {
  return parse(parseResponseHead, 'HTTP/1.1 200 ', split(list).fields, limits);
}

/** What of an answer's fields reaches the client, masked; without `Alt-Svc`, which would lead it around the proxy. */
export function outgoingFields(
  head: ResponseHead,
  mask: Mask | undefined,
  also: (id: number) => boolean = () => false,
): HeaderList {
  const connection = readConnectionFields(head);
  const drop = isFault(connection) ? undefined : connection.drop;
  if (mask) maskResponseHead(head, mask);
  const { bytes, fields } = head;
  const list: string[] = [];
  for (let i = 0; i < fields.count; i += 1) {
    const id = fields.id(i);
    if (drop?.[i] === 1 || id === Field.altSvc || also(id)) continue;
    const name = bytes.toString('latin1', fields.nameStart(i), fields.nameEnd(i));
    list.push(name, bytes.toString('latin1', fields.valueStart(i), fields.valueEnd(i)));
  }
  return list;
}

/** Fields that say something about the message before it have no place behind it (RFC 9110 §6.5.1). */
export function isNoTrailer(id: number): boolean {
  return id === Field.contentLength || id === Field.transferEncoding || id === Field.host;
}

/** As node:http2 wants trailers and interim heads: by name, in one value or several. */
export function byName(list: HeaderList): Record<string, string[]> {
  const fields: Record<string, string[]> = Object.create(null);
  for (let i = 0; i < list.length; i += 2) (fields[list[i] ?? ''] ??= []).push(list[i + 1] ?? '');
  return fields;
}

type Pair = readonly [name: string, value: string];

function split(list: HeaderList): { pseudo: Record<string, string | undefined>; fields: Pair[] } {
  const pseudo: Record<string, string | undefined> = {};
  const fields: Pair[] = [];
  for (let i = 0; i + 1 < list.length; i += 2) {
    const [name = '', value = ''] = [list[i], list[i + 1]];
    if (name.startsWith(':')) pseudo[name] = value;
    else fields.push([name, value]);
  }
  return { pseudo, fields };
}

/** Lines that say more or other fields than those they were made of were made to (CR LF, a colon in a name). */
function parse<H extends RequestHead | ResponseHead>(
  read: (bytes: Buffer, start: number, limits: HeadLimits) => H | HeadFault | undefined,
  startLine: string,
  fields: readonly Pair[],
  limits: HeadLimits,
): H | HeadFault {
  let text = `${startLine}\r\n`;
  for (const [name, value] of fields) text += `${name}: ${value}\r\n`;
  const bytes = Buffer.from(`${text}\r\n`, 'latin1');
  const head = read(bytes, 0, limits);
  if (head === undefined) return faults.headTooLarge;
  if (isFault(head)) return head;
  const isFaithful =
    head.fields.count === fields.length &&
    head.end === bytes.length &&
    fields.every(([name], i) => head.fields.nameEnd(i) - head.fields.nameStart(i) === name.length);
  return isFaithful ? head : faults.nameMalformed;
}
