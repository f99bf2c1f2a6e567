// The JSON body of a request, read whole within the limits of its route and by its rules: strict ones, unless a public
// contract has clients that send more.
import { RequestError } from '../../../base/http/request-body.ts';
import { collectBody } from '../../../base/http/collected-body.ts';
import { type ContentCoding, readContentCoding } from '../../../base/http/content-coding.ts';
import type { Exchange } from '../../../base/http/http-server.ts';
import { readJsonBody, UNSTORABLE } from '../../../base/http/json-body.ts';
import { readContent } from '../../../base/http/request-content.ts';
import { type JsonRules, STRICT } from '../../../base/json/json-document.ts';
import { type Issue, type Loc, toLocKey } from '../../../base/schema.ts';

/** How a route reads its JSON, where it is not as strict as the others. */
export type BodyRules = Partial<JsonRules> & {
  /** Without its coding; that of the server when absent. */
  readonly maxBytes?: number;
  /** Content codings that it accepts; none when absent. */
  readonly codings?: readonly ContentCoding[];
};

export type JsonPart = { readonly value: unknown } | { readonly issue: Issue };

/** The value is undefined where there is no body. Throws RequestError or BodyError for a body that is not read. */
export async function readJsonPart(
  request: Pick<Exchange, 'head' | 'body'>,
  { maxBytes, codings = [], ...rules }: BodyRules & { readonly maxBytes: number },
): Promise<JsonPart> {
  const { head } = request;
  const pieces = await readPieces(request, { maxBytes, codings });
  if (pieces.every(({ length }) => length === 0)) return { value: undefined };
  if (!isJson(head.field('content-type') ?? 'application/json')) throw new RequestError('content_type');
  const parsed = await readJsonBody(pieces, { ...STRICT, ...rules, ignoresBom: true });
  if (parsed.ok) return { value: parsed.value };
  const { msg, position, unstorable } = parsed;
  if (unstorable !== undefined) return { issue: toUnstorable(['body'], unstorable) };
  const loc = position === undefined ? ['body'] : ['body', position];
  return { issue: { loc, msg, type: 'json_invalid' } };
}

/** The issue of a text at `path` of a part that PostgreSQL cannot store. */
export function toUnstorable(place: Loc, path: Loc): Issue {
  const names = path.map((key) => (typeof key === 'string' ? toLocKey(key) : key));
  return { loc: [...place, ...names], msg: UNSTORABLE, type: 'string_unicode' };
}

type Whole = { readonly maxBytes: number; readonly codings: readonly ContentCoding[] };

async function readPieces(
  request: Pick<Exchange, 'head' | 'body'>,
  { maxBytes, codings }: Whole,
): Promise<readonly Uint8Array[]> {
  const { head, body } = request;
  if (!head.hasBody || readContentCoding(head, codings) === undefined) return await body.collect(maxBytes);
  const limits = { codings, maxBytes, maxSentBytes: maxBytes, ...CODED };
  return collectBody(readContent(request, limits));
}

const CODED = { maxRatio: 100, idleMs: 10_000, totalMs: 30_000 };

/** JSON is UTF-8 (RFC 8259 §8.1): another charset would be read as something else than what was sent. */
function isJson(contentType: string): boolean {
  const [, parameters = ''] = JSON_TYPE.exec(contentType) ?? [];
  const charsets = [...parameters.matchAll(/;[ \t]*charset=("?)([^";\s]*)\1/gi)];
  return JSON_TYPE.test(contentType) && charsets.every(([, , charset = '']) => /^utf-?8$/i.test(charset));
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json($|[ \t]*;.*)/i;
