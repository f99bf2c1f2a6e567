// The parts of the OpenAPI document that all routes share: answers, headers, ways to say who asks. Data alone.

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
    description: 'That of the request, if it was well formed, else a new one',
  },
};
const retryAfter: ResponseHeaders = {
  ...requestId,
  'Retry-After': { schema: { type: 'integer' }, description: 'Seconds' },
};

export const problemSchema: JsonSchema = {
  type: 'object',
  properties: { detail: { type: 'string' } },
  required: ['detail'],
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
  Unusable: { description: 'The request cannot be done', headers: requestId, content: problem },
  Unauthenticated: { description: 'No valid key came', headers: requestId, content: problem },
  Forbidden: { description: 'The key may not do this here', headers: requestId, content: problem },
  NotFound: { description: 'There is no such thing here', headers: requestId, content: problem },
  Conflict: { description: 'The state does not allow it', headers: requestId, content: problem },
  TooLarge: { description: 'The body is too large', headers: requestId, content: problem },
  UnknownType: { description: 'The body is not JSON', headers: requestId, content: problem },
  Invalid: {
    description: 'Every issue of the request, each with its place',
    headers: requestId,
    content: asJson({ $ref: '#/components/schemas/ValidationError' }),
  },
  TooMany: { description: 'Too many requests', headers: retryAfter, content: problem },
  Unavailable: { description: 'A fault of the platform, or not now', headers: retryAfter, content: problem },
};
/** Which of them has a status. */
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
    description: 'The workspace. Needed where the key stands for more than one',
    schema: { type: 'string', format: 'uuid' },
  },
  OrganizationId: {
    name: 'X-Organization-Id',
    in: 'header',
    required: false,
    description: 'The organization. It must be that of the key',
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
