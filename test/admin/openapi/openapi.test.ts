// The OpenAPI document of the admin API: it has every route, and what a real sidecar takes and returns validates by it.
import Ajv2020 from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { adminErrorCodes } from '../../../src/admin/admin-errors.ts';
import { type OpenApiDocument, toOpenApi } from '../../../src/admin/openapi/openapi.ts';
import { routes } from '../../../src/admin/routes.ts';
import type { AdminReply } from '../../support/admin-client.ts';
import { createTestSidecar, type TestSidecar } from '../../support/test-sidecar.ts';

const rules = {
  rules: [
    {
      name: 'api',
      match_hosts: ['api.test'],
      headers: [
        { name: 'A', type: 'opaque', value: 'canary-opaque-value' },
        { name: 'B', type: 'workspace_secret', value: 'Bearer {KEY}' },
        { name: 'C', type: 'plaintext', value: 'plain' },
      ],
    },
  ],
  callbacks: [{ match_hosts: ['callback.test'], url: 'https://keys.test/', ttl_seconds: 60 }],
  access_control: { allow_list: ['api.test', 'callback.test'] },
};

type Row = readonly [
  status: number,
  method: string,
  path: string,
  body?: unknown,
  fields?: readonly string[],
];

/** In order: later ones meet what earlier ones have made. */
const rows: readonly Row[] = [
  [200, 'GET', '/'],
  [200, 'GET', '/openapi.json'],
  [200, 'GET', '/healthz'],
  [200, 'GET', '/readyz'],
  [200, 'GET', '/v1/ca.pem'],
  // The stream has no end: test/admin/records.
  [422, 'GET', '/v1/records?status=all'],
  [200, 'GET', '/v1/workspace_secrets'],
  [200, 'PUT', '/v1/workspace_secrets', { KEY: 'canary-workspace-secret' }],
  [200, 'POST', '/v1/workspace_secrets', [{ key: 'OTHER', value: null }]],
  [422, 'PUT', '/v1/workspace_secrets', { KEY: 1 }],
  [200, 'PUT', '/v1/proxy_config', rules],
  [200, 'POST', '/v1/proxy_config', { proxy_config: rules }],
  [422, 'PUT', '/v1/proxy_config', { rules: [{ match_hosts: [] }] }],
  [412, 'PUT', '/v1/proxy_config', rules, ['If-Match: "another"']],
  [400, 'PUT', '/v1/proxy_config', rules, ['If-Match: another']],
  [200, 'GET', '/v1/proxy_config'],
  [304, 'GET', '/v1/proxy_config', undefined, ['If-None-Match: *']],
  [422, 'GET', '/v1/proxy_config?pretty=1'],
  [
    201,
    'POST',
    '/v1/sandboxes',
    { id: 'box', proxy_config: rules, workspace_secrets: { KEY: 'canary-of-box' } },
  ],
  [
    201,
    'POST',
    '/v1/sandboxes',
    { id: 'alone', listen: '127.0.0.1:0', ca: 'own', limits: { max_lookups: 2 } },
  ],
  [409, 'POST', '/v1/sandboxes', { id: 'box' }],
  [403, 'POST', '/v1/sandboxes', { id: 'third', listen: { handed_over: 'x' } }],
  [422, 'POST', '/v1/sandboxes', { id: 'Not An Id' }],
  [200, 'GET', '/v1/sandboxes'],
  [200, 'GET', '/v1/sandboxes/alone'],
  [404, 'GET', '/v1/sandboxes/nobody'],
  [200, 'PATCH', '/v1/sandboxes/box', { token: 'generate' }],
  [400, 'PATCH', '/v1/sandboxes/box', {}, ['If-Match: *']],
  [200, 'GET', '/v1/sandboxes/box/proxy_config'],
  [200, 'PUT', '/v1/sandboxes/box/proxy_config', { rules: [] }],
  [200, 'POST', '/v1/sandboxes/box/proxy_config', {}],
  [200, 'GET', '/v1/sandboxes/box/workspace_secrets'],
  [200, 'PUT', '/v1/sandboxes/box/workspace_secrets', {}],
  [200, 'POST', '/v1/sandboxes/box/workspace_secrets', { KEY: null }],
  [204, 'DELETE', '/v1/sandboxes/box'],
  [404, 'DELETE', '/v1/sandboxes/box'],
  [409, 'DELETE', '/v1/sandboxes/default'],
];

describe('the OpenAPI document of the admin API', () => {
  it('is served without the token, and has every route', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const response = await fetch(`${proxy.adminUrl}/openapi.json`);
    const document = (await response.json()) as OpenApiDocument;
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(described.toSorted()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).toSorted());
    expect(response.headers.get('content-type')).toBe('application/json');
  });

  it('describes what a sidecar takes and returns', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const document = (await proxy.admin('GET', '/openapi.json')).body as unknown as OpenApiDocument;
    const validator = createValidator(document);
    const tried = new Set<string>();
    for (const row of rows) tried.add(await tryRow(proxy, document, validator, row));
    const all = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    expect(all.filter((one) => !tried.has(one))).toEqual([]);
  });

  it('names every error code that a route may return', () => {
    const schemas = { proxyConfig: {}, sandboxCreation: { properties: {} }, sandboxChange: {} };
    const text = JSON.stringify(toOpenApi(routes, schemas));
    expect(adminErrorCodes.filter(({ code }) => !text.includes(`${code}: `))).toEqual([]);
  });

  it('is not made for a route that nobody described', () => {
    const [first] = routes;
    const schemas = { proxyConfig: {}, sandboxCreation: { properties: {} }, sandboxChange: {} };
    expect(() => toOpenApi([{ ...first!, action: 'new.action' }], schemas)).toThrow(
      'new.action is not in src/admin/openapi/operations.ts',
    );
  });
});

type Validator = (name: string, schema: unknown, value: unknown) => void;

function createValidator(document: OpenApiDocument): Validator {
  const ajv = new Ajv2020.default({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema({ $id: 'document', components: document.components });
  return (name, schema, value) => {
    const text = JSON.stringify(schema).replaceAll('"#/components', '"document#/components');
    const isValid = ajv.compile(JSON.parse(text));
    expect([name, isValid(value), isValid.errors]).toEqual([name, true, null]);
  };
}

/** Sends it, and checks that the document describes the request, unless it is invalid, and the response. */
async function tryRow(
  { admin }: TestSidecar,
  document: OpenApiDocument,
  validate: Validator,
  [status, method, path, body, fields]: Row,
): Promise<string> {
  const reply = await admin(method, path, body, fields);
  const name = `${method} ${path} ${status}`;
  expect([name, reply.status]).toEqual([name, status]);
  const [pattern = '', methods = {}] =
    Object.entries(document.paths).find(([one]) => matches(one, path.replace(/\?.*/, ''))) ?? [];
  const operation = methods[method.toLowerCase()];
  const request = operation?.requestBody?.content['application/json']?.schema;
  if (status < 400 && body !== undefined) validate(name, request, body);
  validateResponse(name, operation?.responses[status]?.content, reply, validate);
  return `${method.toLowerCase()} ${pattern}`;
}

function validateResponse(
  name: string,
  content: Readonly<Record<string, { readonly schema: unknown }>> | undefined,
  reply: AdminReply,
  validate: Validator,
): void {
  if (reply.text === '') expect([name, content]).toEqual([name, undefined]);
  else if (reply.text.startsWith('{')) validate(name, content?.['application/json']?.schema, reply.body);
  else expect(Object.keys(content ?? {})).toEqual(['application/x-pem-file']);
}

function matches(pattern: string, path: string): boolean {
  return new RegExp(`^${pattern.replaceAll('.', '\\.').replace('{id}', '[a-z]+')}$`).test(path);
}
