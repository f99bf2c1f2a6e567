// The routes as an OpenAPI 3.1 document. It describes what the pipeline does for every route, so that a new route needs no
// description of its own. Pure.
import { type z, toJsonSchema } from '../../../base/schema.ts';
import {
  type JsonSchema,
  type Parameter,
  type Reference,
  type ResponseObject,
  asJson,
  problemSchema,
  requestId,
  responseReference,
  sharedResponse,
  securitySchemes,
  sharedParameters,
  sharedResponses,
  validationErrorSchema,
} from './openapi-components.ts';
import { type ResponseSchema, isStreamResponse, isTextResponse } from '../responses.ts';
import type { Route } from '../route.ts';

export type OpenApiDocument = ReturnType<typeof toOpenApi>;
export type Operation = ReturnType<typeof toOperation>;

/** Throws an Error for routes that cannot be described: that is a bug in the routes. */
export function toOpenApi(routes: readonly Route[], version: string) {
  const schemas = createComponentSchemas({ ValidationError: validationErrorSchema, Problem: problemSchema });
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of routes) {
    const methods = (paths[route.path] ??= {});
    const method = route.method.toLowerCase();
    if (methods[method] !== undefined) throw new Error(`two routes for ${route.method} ${route.path}`);
    methods[method] = toOperation(route, schemas);
  }
  return {
    openapi: '3.1.1' as const,
    info: { title: 'Sallyport platform', version, description: DESCRIPTION },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: schemas.all(),
      responses: sharedResponses,
      parameters: sharedParameters,
      securitySchemes,
    },
  };
}

function toOperation(route: Route, schemas: ComponentSchemas) {
  const { access, tracking } = route;
  const operationId = operationIdOf(route);
  const convert = (schema: z.ZodType, io: 'input' | 'output'): JsonSchema =>
    schemas.take(toJsonSchema(schema, io) as JsonSchema, { io, operationId });
  return {
    operationId,
    tags: [route.tag],
    summary: route.summary,
    parameters: [
      ...parametersIn('path', route.params && convert(route.params, 'input'), route.path),
      ...parametersIn('query', route.query && convert(route.query, 'input'), route.path),
      ...access.parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    ],
    ...requestBodyOf(route, (schema) => convert(schema, 'input')),
    responses: responsesOf(route, (schema) => convert(schema, 'output')),
    security: access.schemes.map((name) => ({ [name]: [] })),
    /** Who may call it. */
    'x-access': access.to,
    ...(access.permission === undefined ? {} : { 'x-permission': access.permission }),
    ...('operation' in tracking ? { 'x-audit-operation': tracking.operation } : {}),
  };
}

function requestBodyOf({ body, upload }: Route, convert: (schema: z.ZodType) => JsonSchema) {
  if (upload !== undefined) {
    // What a part or a file holds is up to the route.
    const content = Object.fromEntries(upload.mediaTypes.map((type) => [type, { schema: {} }]));
    return { requestBody: { required: true, content } };
  }
  if (body === undefined) return {};
  const required = !body.safeParse(undefined).success;
  return { requestBody: { required, content: asJson(convert(body)) } };
}

/** `patch_v2_listeners_listener_id`: method and path are unique, so this is. */
function operationIdOf({ method, path }: Route): string {
  return `${method}${path}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replace(/_$/, '');
}

/** Throws an Error where the braces of a path and its schema do not have the same names. */
function parametersIn(place: 'path' | 'query', schema: JsonSchema | undefined, path: string): Parameter[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly required?: readonly string[];
  };
  const names = Object.keys(properties);
  const braces = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  if (place === 'path' && String(names.toSorted()) !== String(braces.toSorted()))
    throw new Error(`${path} has parameters that differ from its schema: ${names.join(', ')}`);
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(typeof description === 'string' ? { description } : {}),
    schema: rest,
  }));
}

function responsesOf(
  route: Route,
  convert: (schema: z.ZodType) => JsonSchema,
): Readonly<Record<string, ResponseObject | Reference>> {
  const { responses, failures = [], access, method } = route;
  const refused = access.schemes.length === 0 ? [422] : [401, 403, 422, 429];
  // The key may give access to more than one workspace.
  const unspecified = access.to === 'workspace' ? [400] : [];
  // A body is read, and rejected, also where the route takes none.
  const unreadable = method === 'GET' ? [] : [400, 413, 415];
  const all = [...failures, ...refused, ...unspecified, ...unreadable];
  const statuses = [...new Set(all)].toSorted((a, b) => a - b);
  return {
    ...Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [status, toSuccess(response, convert)]),
    ),
    ...Object.fromEntries(
      [...statuses, 500].map((status) => [status === 500 ? '5XX' : status, toFailure(route, status)]),
    ),
  };
}

function toFailure({ errors }: Route, status: number): ResponseObject | Reference {
  if (errors === undefined) return responseReference(status);
  return { ...sharedResponse(status), content: { [errors.mediaType]: { schema: errors.schema } } };
}

function toSuccess(response: ResponseSchema, convert: (schema: z.ZodType) => JsonSchema): ResponseObject {
  if (response === null) return { description: 'No content', headers: requestId };
  if (isStreamResponse(response))
    return {
      description: 'Success',
      headers: requestId,
      content: { [response.streamType]: { schema: { type: 'string' } } },
    };
  const content = isTextResponse(response)
    ? { [response.textType]: { schema: response.schema ? convert(response.schema) : { type: 'string' } } }
    : asJson(convert(response));
  return { description: 'Success', headers: requestId, content };
}

const DESCRIPTION =
  'The response for an id of another workspace or organization is the same as for one that does not exist. A field of ' +
  'a body that is not described here is rejected, and below /v1/ a query parameter too; elsewhere it is ignored. Every response has X-Request-Id. Every error has a code, or issues that have a type.';

type ComponentSchemas = ReturnType<typeof createComponentSchemas>;

/** What a schema defines beside itself is moved to the schemas of the document and referenced there. */
function createComponentSchemas(fixed: Readonly<Record<string, JsonSchema>>) {
  const found = new Map(Object.entries(fixed));
  return {
    /** The schema without its definitions. The input form of a definition may differ from its output form. */
    take(
      schema: JsonSchema,
      { io, operationId }: { readonly io: 'input' | 'output'; readonly operationId: string },
    ): JsonSchema {
      const { $schema: _, $defs = {}, ...rest } = schema as JsonSchema & { readonly $defs?: JsonSchema };
      // Zod's own names are unique only within one schema.
      const rename = (name: string): string =>
        name.startsWith('__') ? `${operationId}${name}` : io === 'input' ? `${name}Input` : name;
      for (const [name, definition] of Object.entries($defs)) {
        const moved = pointed(definition, rename) as JsonSchema;
        const known = found.get(rename(name));
        if (known !== undefined && JSON.stringify(known) !== JSON.stringify(moved))
          throw new Error(`two schemas are called ${rename(name)}`);
        found.set(rename(name), moved);
      }
      return pointed(rest, rename) as JsonSchema;
    },
    all: () => Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

const LOCAL = '#/$defs/';

function pointed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((one) => pointed(one, rename));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === '$ref' && typeof member === 'string' && member.startsWith(LOCAL)
        ? [key, `#/components/schemas/${rename(member.slice(LOCAL.length))}`]
        : [key, pointed(member, rename)],
    ),
  );
}
