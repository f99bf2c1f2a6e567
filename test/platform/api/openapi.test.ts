// The OpenAPI document: what its own specification demands, what the routes say, and the page that is made of it.
import { createHash } from 'node:crypto';
import Ajv2020 from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { z } from '../../../src/base/schema.ts';
import { anyone } from '../../../src/platform/api/access.ts';
import { statusesOf } from '../../../src/platform/api/responses.ts';
import { toPage } from '../../../src/platform/api/openapi/documents-page.ts';
import { withDocuments } from '../../../src/platform/api/openapi/documents.ts';
import {
  type OpenApiDocument,
  type Operation,
  toOpenApi,
} from '../../../src/platform/api/openapi/openapi.ts';
import { type Route, defineRoute } from '../../../src/platform/api/route.ts';
import { createRoutes } from '../../../src/platform/modules.ts';
import { createTestWiring } from '../../support/test-wiring.ts';

const routes: readonly Route[] = withDocuments({
  routes: createRoutes(createTestWiring()),
  version: '1.2.3',
  isReady: () => true,
});
const document: OpenApiDocument = toOpenApi(routes, '1.2.3');
const operations: readonly (readonly [string, string, Operation])[] = Object.entries(document.paths).flatMap(
  ([path, methods]) => Object.entries(methods).map(([method, one]) => [method, path, one] as const),
);

function referencesIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === '$ref' && typeof member === 'string' ? [member] : referencesIn(member),
  );
}

function at(pointer: string): unknown {
  return pointer
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}

function schemasIn(value: unknown): readonly object[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === 'schema' ? [member as object] : schemasIn(member),
  );
}

function patternsIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === 'pattern' && typeof member === 'string' ? [member] : patternsIn(member),
  );
}

it('has patterns that every language can read: without Unicode properties and without surrogates', () => {
  const patterns = patternsIn(document);
  expect(patterns.length).toBeGreaterThan(20);
  expect(patterns.filter((pattern) => /\\p|\\ud[89a-f]/i.test(pattern))).toEqual([]);
});

type WithContent = { readonly content: Readonly<Record<string, { readonly schema: unknown }>> };

/** The JSON schema of a body, with what it points at in place of its references. */
function resolved(body: unknown): unknown {
  return inlined((body as WithContent).content['application/json']?.schema, at);
}

/** What zod itself says, in the same form. */
function toSchema(schema: z.ZodType, io: 'input' | 'output'): unknown {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io });
  const { $defs = {}, ...rest } = json as { readonly $defs?: Readonly<Record<string, unknown>> };
  return inlined(rest, (pointer) => $defs[pointer.slice('#/$defs/'.length)]);
}

function inlined(value: unknown, find: (pointer: string) => unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => inlined(one, find));
  if (typeof value !== 'object' || value === null) return value;
  const { $ref } = value as { readonly $ref?: string };
  if ($ref !== undefined) return inlined(find($ref), find);
  // The name of a component, and not a property of that name.
  const members = Object.entries(value).filter(([key, member]) => key !== 'id' || typeof member === 'object');
  return Object.fromEntries(members.map(([key, member]) => [key, inlined(member, find)]));
}

/** The alternatives by access. */
const SECURITY: Readonly<Record<string, readonly (readonly string[])[]>> = {
  anyone: [],
  organization: [['API Key'], ['Bearer Auth']],
  workspace: [['API Key'], ['Bearer Auth'], ['API Key', 'Tenant ID'], ['Bearer Auth', 'Tenant ID']],
  sandbox: [['Sandbox Key'], ['Sandbox Bearer']],
  upload: [['Upload Signature']],
  attachment: [['Attachment Signature']],
};

describe('the document', () => {
  it('has the version and the security schemes that clients of a control plane know', async () => {
    const served = await routes.find(({ path }) => path === '/openapi.json')?.handle({} as never, undefined);
    const { info, components } = JSON.parse(String(served?.body));
    expect(info.version).toBe('0.1.0');
    expect(components.securitySchemes).toMatchObject({
      'API Key': { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
      'Tenant ID': { type: 'apiKey', in: 'header', name: 'X-Tenant-Id' },
      'Bearer Auth': { type: 'http', scheme: 'bearer' },
    });
  });

  it('has every route that there is, and no other', () => {
    const reported = operations.map(([method, path]) => `${method.toUpperCase()} ${path}`);
    expect(reported.toSorted()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).toSorted());
    expect(reported).toEqual(
      expect.arrayContaining(['GET /openapi.json', 'GET /docs', 'GET /ok', 'GET /info']),
    );
    expect(reported.length).toBeGreaterThan(30);
  });

  it('describes every tag, and names the licence', () => {
    expect(document.info).toMatchObject({ license: { identifier: 'MIT' } });
    for (const { name, description } of document.tags as readonly { name: string; description: string }[])
      expect([name, description]).not.toEqual([name, name]);
  });

  it('has no pattern that only JavaScript reads', () => {
    const patterns = [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)];
    expect(patterns.length).toBeGreaterThan(10);
    for (const [, pattern = ''] of patterns) expect(JSON.parse(pattern)).not.toMatch(/\\[pP]\{|\\u\{/);
  });

  it('names each operation once', () => {
    const ids = operations.map(([, , { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^[a-z][a-z0-9_]*$/.test(id))).toEqual([]);
  });

  it('points at nothing that is not there', () => {
    const references = [...new Set(referencesIn(document))];
    expect(references.length).toBeGreaterThan(5);
    expect(references.filter((one) => !one.startsWith('#/components/') || at(one) === undefined)).toEqual([]);
  });

  it('declares every parameter of a path, and each parameter once', () => {
    for (const [, path, { parameters }] of operations) {
      const known = parameters.map((one) => ('$ref' in one ? at(one.$ref) : one)) as {
        name: string;
        in: string;
      }[];
      const braces = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(known.filter((one) => one.in === 'path').map(({ name }) => name)).toEqual(braces);
      const keys = known.map((one) => `${one.in} ${one.name}`);
      expect(new Set(keys).size).toBe(keys.length);
    }
  });

  it('describes the parts and the responses of each route by their schemas', () => {
    for (const { method, path, params, query, body, access, responses, upload } of routes) {
      const one = document.paths[path]?.[method.toLowerCase()];
      const known = (one?.parameters ?? []).filter((parameter) => 'name' in parameter);
      expect(known.map(({ name }) => name)).toEqual([
        ...Object.keys(params?.shape ?? {}),
        ...Object.keys(query?.shape ?? {}),
      ]);
      for (const [name, schema] of Object.entries({ ...params?.shape, ...query?.shape }))
        expect(known.find((parameter) => parameter.name === name)?.required ?? false).toBe(
          !(schema as z.ZodType).safeParse(undefined).success,
        );
      expect(one?.parameters.length).toBe(known.length + access.parameters.length);
      expect(one?.requestBody?.required).toBe(upload ? true : body && !body.safeParse(undefined).success);
      if (body !== undefined) expect(resolved(one?.requestBody)).toEqual(toSchema(body, 'input'));
      for (const [status, response] of Object.entries(responses))
        if (response !== null && '_zod' in response)
          expect(resolved(one?.responses[status])).toEqual(toSchema(response, 'output'));
    }
  });

  it('has schemas that are JSON Schema 2020-12, in all places', () => {
    const ajv = new Ajv2020.default({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: 'document', components: document.components });
    for (const schema of schemasIn(document)) {
      const text = JSON.stringify(schema).replaceAll('"#/components', '"document#/components');
      expect(ajv.compile(JSON.parse(text))).toBeTypeOf('function');
    }
  });

  it('says who may call what, as the routes do', () => {
    for (const route of routes) {
      const one = document.paths[route.path]?.[route.method.toLowerCase()];
      expect(one?.['x-access']).toBe(route.access.to);
      const schemes = (one?.security ?? []).map((alternative) => Object.keys(alternative));
      expect(schemes).toEqual(SECURITY[route.access.to]);
      for (const status of statusesOf(route.responses)) expect(one?.responses).toHaveProperty(String(status));
      if (route.access.to !== 'anyone')
        for (const status of ['401', '403', '422', '429']) expect(one?.responses).toHaveProperty(status);
      expect(one?.['x-audit-operation']).toBe(
        'operation' in route.tracking ? route.tracking.operation : undefined,
      );
    }
  });

  it('says 429 of a route that anybody may call and that runs a limited number of times', () => {
    const limited = routes.filter(
      ({ access, limits }) => access.to === 'anyone' && limits?.running !== undefined,
    );
    expect(limited.map(({ method, path }) => `${method} ${path}`)).toContain('POST /login');
    for (const { method, path } of limited)
      expect(document.paths[path]?.[method.toLowerCase()]?.responses).toHaveProperty('429');
  });

  it('says 431 of exactly the routes whose query has a list or a long text: a valid one can be longer than a head may be', () => {
    const listed = operations.filter(([, , { parameters }]) =>
      parameters.some(
        (one) =>
          'schema' in one &&
          one.in === 'query' &&
          (one.schema['type'] === 'array' || Number(one.schema['maxLength'] ?? 0) > 1_000),
      ),
    );
    const said = operations.filter(([, , { responses }]) => '431' in responses);
    expect(said).toEqual(listed);
    expect(said.map(([, path]) => path)).toEqual(
      expect.arrayContaining([
        '/api/v1/orgs/current/members/active',
        '/api/v1/audit-logs',
        '/traces/{session_id}',
      ]),
    );
  });

  it('says 431 in the format of all routes: the head is refused before its route is looked for', () => {
    const said = operations.flatMap(([, , { responses }]) => responses['431'] ?? []);
    expect(said.length).toBeGreaterThan(2);
    for (const response of said) expect(response).toEqual({ $ref: '#/components/responses/HeadTooLarge' });
  });

  it('is refused for a path whose braces and schema differ, and for one route twice', () => {
    const route = (over: Partial<Route>): Route => ({
      ...defineRoute({
        method: 'GET',
        path: '/a/{id}',
        tag: 'A',
        summary: 'A',
        access: anyone,
        tracking: { untracked: 'a test' },
        params: z.strictObject({ id: z.string() }),
        responses: { 200: null },
        failures: [],
        handle: async () => ({}),
      }),
      ...over,
    });
    expect(() => toOpenApi([route({ path: '/a/{other}' })], '1')).toThrow(
      'parameters that differ from its schema',
    );
    expect(() => toOpenApi([route({}), route({})], '1')).toThrow('two routes for GET /a/{id}');
  });
});

describe('the page', () => {
  const { html, fields } = toPage(document);
  it('tells every operation with a curl line', () => {
    for (const [method, path, { operationId }] of operations) {
      expect(html).toContain(`id="${operationId}"`);
      expect(html).toContain(`${method.toUpperCase()} ${path}`);
    }
    expect(html.match(/curl /g)?.length).toBeGreaterThanOrEqual(operations.length);
  });

  it('runs nothing, loads nothing, and its style is the one that the policy names', () => {
    expect(html).not.toMatch(/<script|javascript:|\son\w+=|https?:\/\/(?!json-schema)|<img|<link|<iframe/i);
    const [, style = ''] = /<style>([^<]*)<\/style>/.exec(html) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(fields['Content-Security-Policy']).toContain(`default-src 'none'; style-src 'sha256-${hash}'`);
  });

  it('says how to authenticate, and defines the variables of its examples', () => {
    const [, ways = ''] = /id="authentication">(.*?)<h2/s.exec(html) ?? [];
    for (const sent of ['X-Api-Key: …', 'Authorization: Bearer …', 'X-Tenant-Id: …'])
      expect(ways).toContain(`<code>${sent}</code>`);
    const defined = new Set([...html.matchAll(/export (\w+)=/g)].map(([, name]) => name));
    const lines = [...html.matchAll(/<pre>(curl [^<]*)<\/pre>/g)].map(([, line = '']) => line);
    expect(lines.length).toBeGreaterThanOrEqual(operations.length);
    for (const line of lines) {
      expect(line).not.toMatch(/[{}](?!…|&)/);
      const ofPath = /\$URL([^?&]*)/.exec(line)?.[1] ?? '';
      const names = [...line.replace(ofPath, '').matchAll(/\$(\w+)/g)].map(([, name]) => name);
      expect(names.filter((name) => !defined.has(name))).toEqual([]);
    }
  });

  it('shows how each access is sent in its example', () => {
    expect(html).toContain('curl -H &#34;X-Api-Key: $KEY&#34; &#34;$URL/api/v1/workspaces&#34;');
    expect(html).toMatch(/curl [^<]*\?signature=\$KEY&#34;<\/pre>/);
    expect(html).toContain('<pre>curl &#34;$URL/ok&#34;</pre>');
    expect(html).toMatch(/-F NAME=@FILE|--data-binary @FILE/);
  });

  it('keeps parameters and responses apart, and gives each request a link to itself', () => {
    for (const [, , { operationId }] of operations) {
      const [, section = ''] =
        new RegExp(`<article id="${operationId}">(.*?)</article>`, 's').exec(html) ?? [];
      expect(section, operationId).toContain(`<a href="#${operationId}"`);
      const parts = section.split('<h4>').map((part) => part.slice(0, part.indexOf('<')));
      expect(parts.slice(1), operationId).toEqual(
        section.includes('>Parameters<') ? ['Parameters', 'Responses', 'Example'] : ['Responses', 'Example'],
      );
    }
  });

  it('has no markup of a schema in it', () => {
    const evil = toPage({ ...document, info: { ...document.info, title: '<b>"&' } });
    expect(evil.html).toContain('<title>&#60;b&#62;&#34;&#38;</title>');
  });

  it('leads each of its links somewhere', () => {
    const ids = new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const links = [...html.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !ids.has(id ?? ''))).toEqual([]);
  });
});
