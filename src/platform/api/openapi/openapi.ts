// The adapter of zod-openapi: the routes as an OpenAPI 3.1 document. It describes what the pipeline does for every route, so
// that a new route needs no description of its own. Pure.
import { createDocument, type ZodOpenApiComponentsObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import type { z } from '../../../base/schema.ts';
import {
  type Content,
  type JsonSchema,
  type Parameter,
  type Reference,
  type ResponseObject,
  type SecurityScheme,
  problemSchema,
  requestId,
  responseReference,
  sharedResponse,
  securitySchemes,
  sharedParameters,
  sharedResponses,
  toTag,
  validationErrorSchema,
} from './openapi-components.ts';
import { canExceedHead } from '../query.ts';
import { type ResponseSchema, isStreamResponse, isTextResponse } from '../responses.ts';
import type { Route } from '../route.ts';

/** As the functions below make it; the types of the package say less. */
export type OpenApiDocument = {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  };
};

export type Operation = {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly parameters: readonly (Parameter | Reference)[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, ResponseObject | Reference>>;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  /** Who may call it. */
  readonly 'x-access': string;
  readonly 'x-permission'?: string;
  readonly 'x-audit-operation'?: string;
};

/** What the document says of the program whose routes it describes. */
export type ApiFacts = {
  readonly title: string;
  readonly description: string;
};

/** Throws an Error for routes that cannot be described: that is a bug in the routes. */
export function toOpenApi(
  routes: readonly Route[],
  version: string,
  { title, description }: ApiFacts = { title: 'Sallyport platform', description: DESCRIPTION },
): OpenApiDocument {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const methods = (paths[route.path] ??= {});
    const method = route.method.toLowerCase();
    if (methods[method] !== undefined) throw new Error(`two routes for ${route.method} ${route.path}`);
    methods[method] = toOperation(route);
  }
  const document = createDocument({
    openapi: '3.1.1',
    info: {
      ...{ title, version, description: `${description} ${WITHOUT_ROUTE}` },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map(toTag),
    paths: paths as ZodOpenApiPathsObject,
    components: {
      schemas: { ValidationError: validationErrorSchema, Problem: problemSchema },
      responses: sharedResponses,
      parameters: sharedParameters,
      securitySchemes,
    } as ZodOpenApiComponentsObject,
  });
  return document as unknown as OpenApiDocument;
}

/** Its schemas are those of the route, which the package converts. */
function toOperation(route: Route) {
  const { access, tracking, params, query, path } = route;
  const names = Object.keys(params?.shape ?? {});
  const braces = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  if (String(names.toSorted()) !== String(braces.toSorted()))
    throw new Error(`${path} has parameters that differ from its schema: ${names.join(', ')}`);
  return {
    operationId: operationIdOf(route),
    tags: [route.tag],
    summary: route.summary,
    requestParams: { ...(params && { path: params }), ...(query && { query }) },
    parameters: access.parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    ...requestBodyOf(route),
    responses: responsesOf(route),
    security: securityOf(route),
    'x-access': access.to,
    ...(access.permission === undefined ? {} : { 'x-permission': access.permission }),
    ...('operation' in tracking ? { 'x-audit-operation': tracking.operation } : {}),
  };
}

/** The alternatives: each way to send a key, and in a workspace the same with the header that names it. */
function securityOf({ access: { schemes, parameters } }: Route) {
  const alone = schemes.map((name) => ({ [name]: [] }));
  if (!parameters.includes('TenantId')) return alone;
  return [...alone, ...alone.map((scheme) => ({ ...scheme, 'Tenant ID': [] }))];
}

function requestBodyOf({ body, upload }: Route) {
  if (upload !== undefined) {
    const { schema = {} } = upload;
    const content = Object.fromEntries(upload.mediaTypes.map((type) => [type, { schema }]));
    return { requestBody: { required: true, content } };
  }
  if (body === undefined) return {};
  const required = !body.safeParse(undefined).success;
  return { requestBody: { required, content: { 'application/json': { schema: body } } } };
}

/** `patch_v2_listeners_listener_id`: method and path are unique, so this is. */
function operationIdOf({ method, path }: Route): string {
  return `${method}${path}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replace(/_$/, '');
}

function responsesOf(route: Route): Readonly<Record<string, object>> {
  const { responses, failures = [], access, method, query, limits } = route;
  const busy = limits?.running === undefined ? [] : [429];
  const refused = access.schemes.length === 0 ? [422, ...busy] : [401, 403, 422, 429];
  // A body is read, and rejected, also where the route takes none.
  const unreadable = method === 'GET' ? [] : [400, 413, 415];
  const unfitting = Object.values(query?.shape ?? {}).some(canExceedHead) ? [431] : [];
  const all = [...failures, ...refused, ...unreadable, ...unfitting];
  const statuses = [...new Set(all)].toSorted((a, b) => a - b);
  return {
    ...Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [status, toSuccess(response, status)]),
    ),
    ...Object.fromEntries(
      [...statuses, 500].map((status) => [status === 500 ? '5XX' : status, toFailure(route, status)]),
    ),
  };
}

/** A head that is too large gets 431 before its route is looked for: in the format of all routes. */
function toFailure({ errors }: Route, status: number): ResponseObject | Reference {
  if (errors === undefined || status === 431) return responseReference(status);
  return { ...sharedResponse(status), content: { [errors.mediaType]: { schema: errors.schema } } };
}

function toSuccess(response: ResponseSchema, status: string) {
  if (response === null) return { description: 'No content', headers: requestId };
  const [type, schema] = describe(response);
  const description = status === '501' ? 'Not supported' : 'Success';
  return { description, headers: requestId, content: { [type]: { schema } } };
}

function describe(
  response: NonNullable<ResponseSchema>,
): readonly [mediaType: string, schema: z.ZodType | JsonSchema] {
  if (isStreamResponse(response)) return [response.streamType, response.schema ?? { type: 'string' }];
  if (isTextResponse(response)) return [response.textType, response.schema ?? { type: 'string' }];
  return ['application/json', response];
}

const DESCRIPTION =
  'The HTTP API of the platform: organizations, keys, audit logs, deployments, sandboxes and traces. Send a key as X-Api-Key, or as ' +
  'Authorization: Bearer; a key that has several workspaces names one by X-Tenant-Id. The response for an id of another workspace or organization is the same as for one that does not exist. Below ' +
  '/v1/ a field or a query parameter that is not described here is rejected, elsewhere it is ignored. Every response has X-Request-Id. Every error has a code, or issues that have a type.';

/** What the server responds before it looks for a route, or to a method that the path does not have. */
const WITHOUT_ROUTE =
  'Any request may also get 400 (malformed), 404 (no such path), 405 (see Allow), 408 (too slow), 417 (Expect), 431 (head too ' +
  'large) or 505 (not HTTP/1.1).';
