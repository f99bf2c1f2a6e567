// The admin API as an OpenAPI 3.1 document, made of the table of routes, the catalogue of errors and the schemas by which
// documents are parsed. Loaded with the first request for it. Pure.
import { adminErrorCodes } from '../admin-errors.ts';
import type { Route } from '../route.ts';
import type { DocumentSchemas, JsonSchema } from '../target.ts';
import { componentSchemas, reference } from './component-schemas.ts';
import { type Described, operations } from './operations.ts';

export type OpenApiDocument = {
  readonly openapi: string;
  readonly info: Readonly<Record<string, unknown>>;
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
};

export type OpenApiOperation = {
  readonly operationId: string;
  readonly summary: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly object[];
  readonly requestBody?: { readonly required: true; readonly content: Content };
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
};

type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>;
type OpenApiResponse = {
  readonly description: string;
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Content;
};

/** Throws an Error for a route whose action is not described: that is a bug in the routes. */
export function toOpenApi(routes: readonly Route[], schemas: DocumentSchemas): OpenApiDocument {
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const route of routes) {
    const methods = (paths[route.path] ??= {});
    methods[route.method.toLowerCase()] = toOperation(route);
  }
  return {
    openapi: '3.1.1',
    info: { title: 'Sallyport admin API', version: '1', description: ABOUT, license: MIT },
    paths,
    components: { schemas: componentSchemas(schemas), securitySchemes },
  };
}

const MIT = { name: 'MIT', identifier: 'MIT' } as const;

const ABOUT = `Rules, secrets and sandboxes of a running proxy. The token is in the file that admin.token_file names. \
An error has a detail and a code; invalid input is a 422 whose detail is a list of all issues. \
Unknown query parameters and unknown members of a document are rejected. ${outsideOfRoutes()}`;

/** The errors that no route has: there is none, or not by this method. */
function outsideOfRoutes(): string {
  const codes = adminErrorCodes.filter(({ code }) => code === 'no_route' || code === 'method');
  return codes.map(({ code, status, meaning }) => `${status} ${code}: ${meaning}.`).join(' ');
}

const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer' },
  key: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
} as const;

function toOperation(route: Route): OpenApiOperation {
  const described = operations[route.action];
  if (described === undefined) throw new Error(`${route.action} is not in src/admin/openapi/operations.ts`);
  const parameters = parametersOf(route);
  return {
    operationId: operationId(route),
    summary: route.what,
    security: route.needsToken ? [{ bearer: [] }, { key: [] }] : [],
    ...(parameters.length > 0 && { parameters }),
    ...(described.request && {
      requestBody: { required: true, content: jsonContent(reference(described.request)) },
    }),
    responses: { ...successOf(described), ...failuresOf(route, described) },
  };
}

/** `put_v1_sandboxes_id_proxy_config`: method and path are unique, so this is. */
function operationId({ method, path }: Route): string {
  return `${method}${path}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replace(/_$/, '');
}

function parametersOf({ path, hasEtag, method, query }: Route): readonly object[] {
  const header = (name: string): object => ({
    ...{ name, in: 'header', required: false, schema: { type: 'string' } },
    description: 'entity tags in double quotes, or *',
  });
  const id = { name: 'id', in: 'path', required: true, schema: reference('SandboxId') };
  const conditions = method === 'GET' ? ['If-None-Match'] : ['If-Match', 'If-None-Match'];
  const filters = query.map((name) => ({ name, in: 'query', required: false, schema: { type: 'string' } }));
  return [...(path.includes('{id}') ? [id] : []), ...(hasEtag ? conditions.map(header) : []), ...filters];
}

function successOf({ success, headers = [] }: Described): Readonly<Record<string, OpenApiResponse>> {
  const { status, schema, mediaType } = success;
  const fields = headers.map((name) => [name, { schema: { type: 'string' } }] as const);
  const shown: JsonSchema = mediaType === undefined ? reference(schema ?? '') : { type: 'string' };
  const hasContent = schema !== undefined || mediaType !== undefined;
  return {
    [status]: {
      description: success.description,
      ...(fields.length > 0 && { headers: Object.fromEntries(fields) }),
      ...(hasContent && { content: { [mediaType ?? JSON_TYPE]: { schema: shown } } }),
    },
  };
}

const JSON_TYPE = 'application/json';

function jsonContent(schema: JsonSchema): Content {
  return { [JSON_TYPE]: { schema } };
}

/** What every request may get, then what is the matter with a token, a body or a precondition, then what the action adds. */
const ALWAYS: readonly string[] = [
  ...['malformed', 'framing', 'bad_host', 'wrong_token', 'proxied', 'late', 'expectation', 'foreign_host'],
  ...['too_many_wrong_tokens', 'head_too_large', 'internal_error', 'not_ready', 'version'],
];
const OF_WRITES: readonly string[] = ['too_many_writes', 'busy', 'records_blocked', 'storage_failed'];
const OF_DOCUMENTS: readonly string[] = [
  ...['tiny_chunks', 'content_type', 'content_encoding', 'too_large', 'client_gone', 'parser_failed'],
];

function failuresOf(route: Route, { failures = [] }: Described): Readonly<Record<string, OpenApiResponse>> {
  const isWrite = route.method !== 'GET';
  const possible = new Set([
    ...ALWAYS,
    ...(route.needsToken ? ['no_token'] : []),
    ...(route.subject === 'path' ? ['not_found'] : []),
    ...(route.hasEtag ? ['malformed_etag'] : []),
    ...(route.hasEtag && isWrite ? ['stale'] : []),
    ...(isWrite && !route.hasEtag ? ['no_etag'] : []),
    ...(isWrite ? OF_WRITES : []),
    ...(isWrite && route.method !== 'DELETE' ? OF_DOCUMENTS : []),
    ...failures,
  ]);
  const known = adminErrorCodes.filter(({ code }) => possible.has(code));
  const byStatus = Map.groupBy(known, ({ status }) => status);
  const errors = [...byStatus].map(([status, codes]) => [status, errorOf(codes)] as const);
  const unmodified = route.hasEtag && !isWrite ? ([[304, { description: UNMODIFIED }]] as const) : [];
  return Object.fromEntries([...unmodified, ...errors, [422, INVALID] as const]);
}

const UNMODIFIED = 'If-None-Match has the current entity tag';
const INVALID: OpenApiResponse = {
  description: 'The request is invalid: every issue at once',
  content: jsonContent(reference('Issues')),
};

function errorOf(codes: readonly { readonly code: string; readonly meaning: string }[]): OpenApiResponse {
  return {
    description: codes.map(({ code, meaning }) => `${code}: ${meaning}`).join('. '),
    content: jsonContent({
      allOf: [reference('Error'), { properties: { code: { enum: codes.map(({ code }) => code) } } }],
    }),
  };
}
