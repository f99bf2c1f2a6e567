// The parts of a request by the schemas of its route; every issue of all of them at once. A body is read within its limit,
// as JSON that means one thing, and every text must be one that the database can store.
import { InvalidInput } from '../../base/domain-error.ts';
import { readContentCoding } from '../../base/http/content-coding.ts';
import { readJsonBody, UNSTORABLE } from '../../base/http/json-body.ts';
import { RequestError } from '../../base/http/request-body.ts';
import { STRICT } from '../../base/json/json-document.ts';
import { type Issue, type Loc, parseWith, toLocKey, type z } from '../../base/schema.ts';
import { pathToUnstorable } from '../../base/json/storable-text.ts';
import type { ApiRequest } from './api-request.ts';
import { readQuery } from './query.ts';
import type { RequestParts } from './route.ts';

export type ReadParts = { readonly params: unknown; readonly query: unknown; readonly body: unknown };

/** Throws InvalidInput, or RequestError for a body that is not read to its end. */
export async function readParts(
  route: RequestParts,
  request: Pick<ApiRequest, 'head' | 'body'> & { readonly url: URL },
  params: Readonly<Record<string, string>>,
  maxBodyBytes: number,
): Promise<ReadParts> {
  // A list of lists: there may be more issues than a call takes arguments.
  const issues: (readonly Issue[])[] = [];
  const take = (schema: z.ZodType | undefined, input: unknown, place: string): unknown => {
    if (schema === undefined) return undefined;
    const parsed = parseWith(schema, input, [place]);
    if (parsed.ok) return parsed.value;
    issues.push(parsed.issues);
  };
  const takeText = (schema: z.ZodType | undefined, input: unknown, place: string): unknown => {
    const path = pathToUnstorable(input);
    if (path === undefined) return take(schema, input, place);
    issues.push([toUnstorable([place], path)]);
  };
  const query = readQuery(request.url.searchParams, route);
  issues.push(query.issues);
  const read = {
    params: takeText(route.params, params, 'path'),
    query: takeText(route.query, query.value, 'query'),
    body: undefined as unknown,
  };
  const body = await readBody(request, maxBodyBytes);
  if ('issue' in body) issues.push([body.issue]);
  else if (route.body === undefined && body.value !== undefined)
    issues.push([{ loc: ['body'], msg: 'This route takes no body: send none', type: 'extra_forbidden' }]);
  else read.body = take(route.body, body.value, 'body');
  const all = issues.flat();
  if (all.length > 0) throw new InvalidInput(all);
  return read;
}

/** The value is undefined where there is no body. */
async function readBody(
  { head, body }: Pick<ApiRequest, 'head' | 'body'>,
  maxBytes: number,
): Promise<{ readonly value: unknown } | { readonly issue: Issue }> {
  if (head.hasBody) readContentCoding(head, []);
  const bytes = await body.read(maxBytes);
  if (bytes.length === 0) return { value: undefined };
  if (!isJson(head.field('content-type') ?? 'application/json')) throw new RequestError('content_type');
  const parsed = await readJsonBody(bytes, { ...STRICT, ignoresBom: true });
  if (parsed.ok) return parsed;
  const { msg, position, unstorable } = parsed;
  if (unstorable !== undefined) return { issue: toUnstorable(['body'], unstorable) };
  const loc = position === undefined ? ['body'] : ['body', position];
  return { issue: { loc, msg, type: 'json_invalid' } };
}

/** JSON is UTF-8 (RFC 8259 §8.1): another charset would be read as something else than what was sent. */
function isJson(contentType: string): boolean {
  const [, parameters = ''] = JSON_TYPE.exec(contentType) ?? [];
  const charsets = [...parameters.matchAll(/;[ \t]*charset=("?)([^";\s]*)\1/gi)];
  return JSON_TYPE.test(contentType) && charsets.every(([, , charset = '']) => /^utf-?8$/i.test(charset));
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json($|[ \t]*;.*)/i;

function toUnstorable(place: Loc, path: Loc): Issue {
  const names = path.map((key) => (typeof key === 'string' ? toLocKey(key) : key));
  return { loc: [...place, ...names], msg: UNSTORABLE, type: 'string_unicode' };
}
