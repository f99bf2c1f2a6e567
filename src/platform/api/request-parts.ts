// The parts of a request by the schemas of its route; every issue of all of them at once. Every text of path and query must
// be one that the database can store.
import { InvalidInput } from '../../base/domain-error.ts';
import { pathToUnstorable } from '../../base/json/storable-text.ts';
import { type Issue, parseWith, type z } from '../../base/schema.ts';
import type { ApiRequest, RequestContext } from './api-request.ts';
import { readJsonPart, toUnstorable } from './body/json-part.ts';
import { readQuery } from './query.ts';
import type { RequestParts } from './route.ts';

export type ReadParts = { readonly params: unknown; readonly query: unknown; readonly body: unknown };

/** Throws InvalidInput, or RequestError or BodyError for a body that is not read to its end. Leaves an upload to the route. */
export async function readParts(
  route: RequestParts,
  request: Pick<ApiRequest, 'head' | 'body'>,
  { params, search }: Pick<RequestContext, 'params' | 'search'>,
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
  const query = readQuery(new URLSearchParams(search), route);
  issues.push(query.issues);
  const read = {
    params: takeText(route.params, params, 'path'),
    query: takeText(route.query, query.value, 'query'),
    body: undefined as unknown,
  };
  const body =
    route.upload === undefined
      ? await readJsonPart(request, { maxBytes: maxBodyBytes, ...route.bodyRules })
      : { value: undefined };
  if ('issue' in body) issues.push([body.issue]);
  else if (route.body === undefined && body.value !== undefined)
    issues.push([{ loc: ['body'], msg: 'This route takes no body: send none', type: 'extra_forbidden' }]);
  else read.body = take(route.body, body.value, 'body');
  const all = issues.flat();
  if (all.length > 0) throw new InvalidInput(all);
  return read;
}
