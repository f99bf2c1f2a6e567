// The parts of the OpenAPI document that all routes share: responses, headers, authentication schemes. Data alone.

export type JsonSchema = Readonly<Record<string, unknown>>;
export type Reference = { readonly $ref: string };
export type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>;
type ResponseHeaders = Readonly<
  Record<string, { readonly schema: JsonSchema; readonly description: string }>
>;
export type ResponseObject = {
  readonly description: string;
  readonly headers?: ResponseHeaders;
  readonly content?: Content;
};
export type Parameter = {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  /** False when absent. */
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
};
export function asJson(schema: JsonSchema): Content {
  return { 'application/json': { schema } };
}

export const requestId: ResponseHeaders = {
  'X-Request-Id': {
    schema: { type: 'string' },
    description: 'The X-Request-Id of the request if it was well-formed, else a new id',
  },
};
const retryAfter: ResponseHeaders = {
  ...requestId,
  'Retry-After': { schema: { type: 'integer' }, description: 'Seconds' },
};

export const problemSchema: JsonSchema = {
  type: 'object',
  properties: {
    detail: { type: 'string', description: 'For people; may change' },
    code: { type: 'string', description: 'For programs; does not change' },
  },
  required: ['detail', 'code'],
};
export const validationErrorSchema: JsonSchema = {
  type: 'object',
  properties: {
    detail: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          loc: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
          msg: { type: 'string' },
          type: { type: 'string' },
        },
        required: ['loc', 'msg', 'type'],
      },
    },
  },
  required: ['detail'],
};

/** Of each status that routes may have, the name and the description of the shared response. */
const SHARED: Readonly<Record<number, readonly [name: string, description: string]>> = {
  400: ['Unusable', 'The request cannot be used; the detail says why'],
  401: ['Unauthenticated', 'The key is missing, unknown, expired or revoked'],
  403: ['Forbidden', 'The key does not have the permission'],
  404: ['NotFound', 'There is none, or it is of another workspace or organization'],
  408: ['Timeout', 'What the request waits for did not happen in time: send it again'],
  409: ['Conflict', 'In conflict with the state of the resource; the detail says with what'],
  413: ['TooLarge', 'The request body is too large'],
  415: ['UnknownType', 'The request body is not JSON'],
  422: ['Invalid', 'Every issue of the request, each with its location'],
  429: ['TooMany', 'Too many requests: send it again after Retry-After'],
  431: ['HeadTooLarge', 'The path, the query and the header fields are larger than 16 KB'],
  500: ['Unavailable', 'An error of the server, or it is not available now: send it again after Retry-After'],
};
const RETRIED: ReadonlySet<string> = new Set(['429', '500']);
export const sharedResponses: Readonly<Record<string, ResponseObject>> = Object.fromEntries(
  Object.entries(SHARED).map(([status, [name, description]]) => {
    const schema = { $ref: `#/components/schemas/${name === 'Invalid' ? 'ValidationError' : 'Problem'}` };
    const headers = RETRIED.has(status) ? retryAfter : requestId;
    return [name, { description, headers, content: asJson(schema) }];
  }),
);

/** The response that the reference is to. */
export function sharedResponse(status: number): ResponseObject {
  const response = sharedResponses[SHARED[status]?.[0] ?? ''];
  if (response === undefined) throw new Error(`no shared response has the status ${status}`);
  return response;
}

export function responseReference(status: number): Reference {
  return { $ref: `#/components/responses/${SHARED[status]?.[0]}` };
}

export const sharedParameters: Readonly<Record<string, Parameter>> = {
  TenantId: {
    name: 'X-Tenant-Id',
    in: 'header',
    required: false,
    description: 'The workspace. Required for a key that has no workspace and no home workspace',
    schema: { type: 'string', format: 'uuid' },
  },
  OrganizationId: {
    name: 'X-Organization-Id',
    in: 'header',
    required: false,
    description: 'The organization. It must be the one of the key',
    schema: { type: 'string', format: 'uuid' },
  },
};

export type SecurityScheme = {
  readonly type: 'apiKey' | 'http';
  /** Of an apiKey, the name of the field or parameter. */
  readonly name?: string;
  readonly in?: 'header' | 'query';
  readonly scheme?: 'bearer';
  readonly description?: string;
};

// With the names that existing clients know. `Tenant ID` chooses a workspace beside a key, and is no credential.
export const securitySchemes: Readonly<Record<string, SecurityScheme>> = {
  'API Key': {
    type: 'apiKey',
    in: 'header',
    name: 'X-Api-Key',
    description: 'A service key or a personal token',
  },
  'Tenant ID': {
    type: 'apiKey',
    in: 'header',
    name: 'X-Tenant-Id',
    description: 'The workspace, beside a key that has several or none',
  },
  'Bearer Auth': { type: 'http', scheme: 'bearer', description: 'The key, as Authorization' },
  'Sandbox Key': { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'The token of a sandbox' },
  'Sandbox Bearer': { type: 'http', scheme: 'bearer', description: 'The same, as Authorization' },
  'Upload Signature': {
    type: 'apiKey',
    in: 'query',
    name: 'signature',
    description: 'Part of an address to upload to, which the API gives',
  },
  'Attachment Signature': {
    type: 'apiKey',
    in: 'query',
    name: 'signature',
    description: 'Part of an address in s3_urls of a run',
  },
};

const TAGS: Readonly<Record<string, string>> = {
  'API keys': 'Service keys and personal tokens',
  'Audit logs': 'What was done and refused in the organization',
  Deployments: 'Agent servers, the revisions that they run, the sources of those, and their logs',
  Listeners: 'Compute that a workspace has registered for its deployments',
  Members: 'The users of the organization and of its workspaces, with their roles',
  Organization: 'The organization of the key',
  'Personal access tokens': 'Keys that act for a user',
  Platform: 'Probes and documentation, without a key',
  'Sign-in': 'Sessions of browsers, which begin with a key',
  'Proxy profiles': 'Rules of the proxy that the sandboxes of a workspace share',
  Sandboxes: 'Boxes whose way out is a proxy with rules, for existing clients of the sandbox API',
  'Sandbox records': 'What sandboxes sent through their proxy, and the tokens with which sidecars report it',
  'Tracing projects': 'Projects that the runs of traces belong to, for existing clients of the trace API',
  'Pages of traces': 'For browsers: projects, runs and traces as HTML, after a sign-in',
  'Bulk exports': 'Traces as Parquet files in buckets: destinations, exports, and the runs of their days',
  'Pages of bulk exports': 'For browsers: exports and their runs as HTML, after a sign-in',
  Runs: 'Runs of traces, as clients send and read them, with their feedback',
  'Workspace secrets': 'Values that rules of sandboxes name; they are never shown',
  Workspaces: 'The workspaces of the organization',
};

/** A module may bring a tag of its own, whose name then says what it is. */
export function toTag(name: string): { readonly name: string; readonly description: string } {
  return { name, description: TAGS[name] ?? name };
}
