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
  readonly required: boolean;
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

const problem: Content = asJson({ $ref: '#/components/schemas/Problem' });
export const sharedResponses: Readonly<Record<string, ResponseObject>> = {
  Unusable: { description: 'Bad request', headers: requestId, content: problem },
  Unauthenticated: { description: 'Missing or invalid key', headers: requestId, content: problem },
  Forbidden: { description: 'The key does not have the permission', headers: requestId, content: problem },
  NotFound: { description: 'Not found', headers: requestId, content: problem },
  Conflict: { description: 'Conflict with the state of the resource', headers: requestId, content: problem },
  TooLarge: { description: 'The request body is too large', headers: requestId, content: problem },
  UnknownType: { description: 'The request body is not JSON', headers: requestId, content: problem },
  Invalid: {
    description: 'Every issue of the request, each with its location',
    headers: requestId,
    content: asJson({ $ref: '#/components/schemas/ValidationError' }),
  },
  TooMany: { description: 'Too many requests', headers: retryAfter, content: problem },
  Unavailable: {
    description: 'Internal error, or temporarily unavailable',
    headers: retryAfter,
    content: problem,
  },
};
/** The shared response of each status. */
export const responseNames: Readonly<Record<number, string>> = {
  400: 'Unusable',
  401: 'Unauthenticated',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  413: 'TooLarge',
  415: 'UnknownType',
  422: 'Invalid',
  429: 'TooMany',
};

export const sharedParameters: Readonly<Record<string, Parameter>> = {
  TenantId: {
    name: 'X-Tenant-Id',
    in: 'header',
    required: false,
    description: 'The workspace. Required for a key that gives access to more than one',
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

export const securitySchemes: Readonly<Record<string, unknown>> = {
  ApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Api-Key',
    description: 'A service key or a personal token',
  },
  Bearer: { type: 'http', scheme: 'bearer', description: 'The same, as Authorization' },
  SandboxKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'The token of a sandbox' },
  SandboxBearer: { type: 'http', scheme: 'bearer', description: 'The same, as Authorization' },
};
