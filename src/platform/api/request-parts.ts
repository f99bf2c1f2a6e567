// The parts of a request by the schemas of its route; every issue of all of them at once. It must not know who asks.
import { InvalidInput } from '../../base/domain-error.ts';
import { type Issue, parseWith, type z } from '../../base/schema.ts';
import { findUnkept, readBody } from './body-reading.ts';
import { readQuery } from './query-reading.ts';
import type { RequestParts } from './route.ts';

export type ReadParts = { readonly params: unknown; readonly query: unknown; readonly body: unknown };

/** Throws InvalidInput, or Unreadable for a body that is not read to its end. */
export async function readParts(
  route: RequestParts,
  request: Request,
  params: Readonly<Record<string, string>>,
  maxBodyBytes: number,
): Promise<ReadParts> {
  // By parts: there may be more of them than a call takes arguments.
  const issues: (readonly Issue[])[] = [];
  const take = (schema: z.ZodType, input: unknown, place: string): unknown => {
    const parsed = parseWith(schema, input, [place]);
    if (parsed.ok) return parsed.value;
    issues.push(parsed.issues);
  };
  const takeTexts = (schema: z.ZodType | undefined, input: unknown, place: string): unknown => {
    const unkept = findUnkept(input, [place]);
    if (unkept !== undefined) return void issues.push([unkept]);
    return schema === undefined ? undefined : take(schema, input, place);
  };
  const raw = readQuery(new URL(request.url).searchParams, route.query);
  issues.push(raw.issues);
  const read = {
    params: takeTexts(route.params, params, 'path'),
    query: takeTexts(route.query, raw.value, 'query'),
    body: await takeBody(route, request, maxBodyBytes, issues, take),
  };
  const all = issues.flat();
  if (all.length > 0) throw new InvalidInput(all);
  return read;
}

type Take = (schema: z.ZodType, input: unknown, place: string) => unknown;

async function takeBody(
  route: RequestParts,
  request: Request,
  maxBytes: number,
  issues: (readonly Issue[])[],
  take: Take,
): Promise<unknown> {
  try {
    const body = await readBody(request, maxBytes);
    if (route.body !== undefined) return take(route.body, body, 'body');
    if (body !== undefined)
      issues.push([{ loc: ['body'], msg: 'Send no body here', type: 'extra_forbidden' }]);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    issues.push(error.issues);
  }
  return undefined;
}
