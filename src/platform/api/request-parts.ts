// The parts of a request by the schemas of its route; every issue of all of them at once. A body is read within its limit,
// as JSON that means one thing, and every text must be one that the database can store.
import { InvalidInput } from '../../base/domain-error.ts';
import { parseJsonBody } from '../../base/http/json-body.ts';
import { RequestError } from '../../base/http/request-body.ts';
import { type Issue, type Loc, parseWith, toLocKey, type z } from '../../base/schema.ts';
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
    const unstorable = findUnstorable(input, [place]);
    if (unstorable !== undefined) return void issues.push([unstorable]);
    if (schema === undefined) return undefined;
    const parsed = parseWith(schema, input, [place]);
    if (parsed.ok) return parsed.value;
    issues.push(parsed.issues);
  };
  const query = readQuery(request.url.searchParams, route.query);
  issues.push(query.issues);
  const read = {
    params: take(route.params, params, 'path'),
    query: take(route.query, query.value, 'query'),
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
  const bytes = await body.read(maxBytes);
  if (bytes.length === 0) return { value: undefined };
  if (!JSON_TYPE.test(head.field('content-type') ?? 'application/json'))
    throw new RequestError('content_type');
  const parsed = parseJsonBody(bytes, true);
  if (parsed.ok) return parsed;
  const { msg, position } = parsed;
  const loc = position === undefined ? ['body'] : ['body', position];
  return { issue: { loc, msg, type: 'json_invalid' } };
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json(?:$|[ \t]*;)/i;

/** The first text that PostgreSQL cannot store unchanged: with U+0000, or with half of a surrogate pair. */
function findUnstorable(value: unknown, loc: Loc): Issue | undefined {
  const path = pathToUnstorable(value);
  if (path === undefined) return undefined;
  const msg = 'Input must be text without U+0000 and without lone surrogates';
  return { loc: [...loc, ...path], msg, type: 'string_unicode' };
}

/** The path is built on the way back: nearly every document has none, and some have half a million members. */
function pathToUnstorable(value: unknown): Loc | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : [];
  if (typeof value !== 'object' || value === null) return undefined;
  const isList = Array.isArray(value);
  for (const [key, member] of isList ? value.entries() : Object.entries(value)) {
    if (typeof key === 'string' && !isStorable(key)) return ['…'];
    const path = pathToUnstorable(member);
    if (path !== undefined) return [typeof key === 'string' ? toLocKey(key) : key, ...path];
  }
  return undefined;
}

function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}
