// Every route over a socket: methods, framing, lengths and header fields that no ordinary client sends. A rejected request
// gets a readable error and changes nothing.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { noProxies } from '../../../src/platform/api/client-address.ts';
import { defaultLimits } from '../../../src/platform/api/limits.ts';
import { openServer, type Server } from '../../../src/platform/api/server.ts';
import { WireClient, type WireResponse } from '../../support/wire-client.ts';
import { type ChangeLog, createChangeLog } from './change-log.ts';
import type { Operation } from './document.ts';
import { fillPath, toPath } from './fixtures.ts';
import { createExample, type EveryRoute, adminOf, openEveryRoute, successOf, toQuery } from './scene.ts';
import { canary } from './schema-variants.ts';
import { sample } from '../../support/run-size.ts';

const MAX_BODY_BYTES = 64 * 1024;
/** The time limit for a request that does not arrive. */
const REQUEST_MS = 1000;

let scene: EveryRoute;
let log: ChangeLog;
let server: Server;
let port: number;
let sandboxToken: string;
beforeAll(async () => {
  scene = await openEveryRoute({ maxBodyBytes: MAX_BODY_BYTES });
  const { api, a1 } = scene;
  const made = await api.ask('POST', '/v1/sandboxes/here/tokens', { key: a1.workspaceKey, body: {} });
  sandboxToken = made.body.token;
  log = await createChangeLog(api.database.owner.db);
  server = await openServer({
    api: api.api,
    listen: { host: '127.0.0.1', port: 0 },
    limits: { ...defaultLimits, bodyBytes: MAX_BODY_BYTES, requestMs: REQUEST_MS },
    trustedProxies: noProxies,
    log: createLog('silent', { write: () => undefined }),
    onFinished: () => undefined,
  });
  port = Number(new URL(server.url).port);
});
afterAll(async () => {
  await server.close();
  await scene[Symbol.asyncDispose]();
});

type Parts = { readonly path: string; readonly fields: readonly string[]; readonly body: string | undefined };

async function partsOf(operation: Operation): Promise<Parts> {
  const { values, query, body } = await createExample(scene.api, operation, scene.a1);
  const { key, tenant } = adminOf(operation, scene.a1);
  const isOfSandbox = operation.route.access.to === 'sandbox';
  return {
    path: toPath(operation.path, values) + toQuery(query),
    fields: [
      `X-Api-Key: ${isOfSandbox ? sandboxToken : key}`,
      ...(tenant === undefined ? [] : [`X-Tenant-Id: ${tenant}`]),
    ],
    body: body === undefined ? undefined : JSON.stringify(body),
  };
}

function head(method: string, path: string, fields: readonly string[]): string {
  return [`${method} ${path} HTTP/1.1`, 'Host: platform.test', ...fields, '', ''].join('\r\n');
}

const JSON_TYPE = 'Content-Type: application/json';

function framed(body: string): readonly string[] {
  return [JSON_TYPE, `Content-Length: ${Buffer.byteLength(body)}`];
}

/** A correct request. */
function whole({ method }: Operation, { path, fields, body }: Parts): string {
  if (body === undefined) return head(method, path, fields);
  return head(method, path, [...fields, ...framed(body)]) + utf8(body);
}

/** One character per byte, as the client sends it. */
function utf8(text: string): string {
  return Buffer.from(text).toString('latin1');
}

async function ask(text: string): Promise<WireResponse> {
  await using client = await WireClient.connect(port);
  await client.send(text);
  return await client.readResponse();
}

type Row = {
  readonly what: string;
  readonly statuses: readonly number[];
  /** Only for methods with a body: others are rejected, and the connection closed, before the body is read. */
  readonly isWithBody?: true;
  text(operation: Operation, parts: Parts): string;
};

const LIMIT = MAX_BODY_BYTES + 1;
const rows: readonly Row[] = [
  {
    what: 'a method of another protocol',
    statuses: [405],
    text: (_, { path, fields }) => head('PROPFIND', path, fields),
  },
  { what: 'an unknown method', statuses: [400], text: (_, { path, fields }) => head('FROB', path, fields) },
  { what: 'OPTIONS', statuses: [405], text: (_, { path, fields }) => head('OPTIONS', path, fields) },
  {
    what: 'a repeated key',
    // 429: all requests come from one address.
    statuses: [400, 401, 429],
    text: ({ method }, { path, fields }) => head(method, path, [...fields, fields[0] ?? '']),
  },
  {
    what: 'two bearer tokens',
    // 429: all requests come from one address.
    statuses: [400, 401, 429],
    text: ({ method }, { path, fields }) => {
      const bearer = `Authorization: Bearer ${fields[0]?.slice('X-Api-Key: '.length)}`;
      return head(method, path, [...fields.slice(1), bearer, bearer]);
    },
  },
  {
    what: 'a repeated organization',
    statuses: [400, 401, 403, 422],
    text: ({ method }, { path, fields }) => {
      const named = `X-Organization-Id: ${scene.a1.organizationId}`;
      return head(method, path, [...fields, named, named]);
    },
  },
  {
    what: 'a Content-Length above the limit',
    statuses: [400, 413],
    text: ({ method }, { path, fields }) =>
      head(method, path, [...fields, JSON_TYPE, `Content-Length: ${LIMIT}`]) + 'x',
  },
  {
    what: 'a chunked body above the limit',
    statuses: [400, 413],
    text: ({ method }, { path, fields }) =>
      `${head(method, path, [...fields, JSON_TYPE, 'Transfer-Encoding: chunked'])}${LIMIT.toString(16)}\r\n${' '.repeat(LIMIT)}\r\n0\r\n\r\n`,
  },
  {
    what: 'an invalid chunk length',
    isWithBody: true,
    statuses: [400],
    text: ({ method }, { path, fields }) =>
      `${head(method, path, [...fields, JSON_TYPE, 'Transfer-Encoding: chunked'])}zz\r\n{}\r\n0\r\n\r\n`,
  },
  {
    what: 'two Content-Length fields',
    statuses: [400],
    text: ({ method }, { path, fields }) =>
      head(method, path, [...fields, 'Content-Length: 1', 'Content-Length: 2']) + '{}',
  },
  {
    what: 'a path with a non-ASCII byte',
    statuses: [400, 404, 422],
    text: ({ method }, { path, fields }) => head(method, `${path}\u00ff`, fields),
  },
  {
    what: 'a path with U+0000',
    statuses: [400],
    text: ({ method }, { path, fields }) => head(method, `${path}\0`, fields),
  },
  {
    what: 'a query with a non-ASCII byte',
    statuses: [400, 422],
    text: ({ method }, { path, fields }) => head(method, `${path}?limit=\u00ff`, fields),
  },
  {
    what: 'a field with a line break',
    statuses: [400],
    text: ({ method }, { path, fields }) => head(method, path, [...fields, `X-A: ${canary}\n B`]),
  },
  {
    what: 'a head without an end',
    statuses: [431],
    text: ({ method }, { path, fields }) => head(method, path, [...fields, `X-A: ${'a'.repeat(20_000)}`]),
  },
];

describe('every route over a socket', () => {
  it('serves a correct request', async () => {
    const found: unknown[] = [];
    for (const operation of scene.operations) {
      const { head: response, text } = await ask(whole(operation, await partsOf(operation)));
      if (response.status !== successOf(operation)) found.push([operation.title, response.status, text]);
    }
    expect(found).toEqual([]);
  });

  it.each(rows.map((row, at) => ({ ...row, at })))(
    'rejects $what with a readable error, and nothing changes',
    async ({ text, statuses, isWithBody, at }) => {
      const found: unknown[] = [];
      const operations = scene.operations.filter(({ route }) => route.access.to !== 'anyone');
      for (const operation of sample(3, operations, at)) {
        if (isWithBody === true && operation.method === 'GET') continue;
        const parts = await partsOf(operation);
        await log.take();
        const { head: response, text: body } = await ask(text(operation, parts));
        const { changes, events } = await log.take();
        const reported = [operation.title, response.status, body, changes, events.length];
        if (!statuses.includes(response.status) || changes.length > 0 || events.length > 1)
          found.push(reported);
        else if (!isRefusal(body) || body.includes(canary)) found.push(reported);
        if (!response.headers.some(([name]) => name.toLowerCase() === 'x-request-id'))
          found.push([reported, 'no id']);
      }
      expect(found).toEqual([]);
    },
  );

  it('serves HEAD like GET, without the body', async () => {
    const found: unknown[] = [];
    for (const operation of scene.operations.filter(({ method }) => method === 'GET')) {
      const parts = await partsOf(operation);
      await using client = await WireClient.connect(port);
      await client.send(head('HEAD', parts.path, parts.fields));
      const response = await client.readHead();
      await client.send(whole(operation, await partsOf(operation)));
      // If the response to HEAD had a body, this head could not be read.
      const next = await client.readHead();
      const wanted = successOf(operation);
      if (response.status !== wanted || next.status !== wanted)
        found.push([operation.title, response.text, next.text]);
    }
    expect(found).toEqual([]);
  });

  it('accepts a request sent byte by byte', async () => {
    const operation = find('POST /v2/listeners');
    await using client = await WireClient.connect(port);
    for (const byte of whole(operation, await partsOf(operation))) await client.send(byte);
    expect((await client.readResponse()).head.status).toBe(201);
  });

  it.each(['POST /v2/listeners', 'DELETE /v2/listeners/{listener_id}', 'POST /v1/sandbox-records'])(
    '%s times out when the body does not arrive, and nothing changes',
    async (title) => {
      const operation = find(title);
      const parts = await partsOf(operation);
      await log.take();
      const text = head(operation.method, parts.path, [...parts.fields, JSON_TYPE, 'Content-Length: 100']);
      const { head: response, text: body } = await ask(`${text}{"`);
      expect([response.status, isRefusal(body), (await log.take()).changes]).toEqual([408, true, []]);
    },
  );

  it('changes nothing for a client that disconnects before the end of its body', async () => {
    const operation = find('POST /v2/listeners');
    const parts = await partsOf(operation);
    await log.take();
    await using client = await WireClient.connect(port);
    const text = whole(operation, parts);
    await client.send(text.slice(0, -1));
    client.reset();
    const { head: response } = await ask(whole(find('GET /ok'), await partsOf(find('GET /ok'))));
    expect([response.status, (await log.take()).changes]).toEqual([200, []]);
  });

  it('handles pipelined requests one at a time, and serves the next connection', async () => {
    const operation = find('POST /v2/listeners');
    const one = whole(operation, await partsOf(operation));
    const two = whole(operation, await partsOf(operation));
    await log.take();
    await using client = await WireClient.connect(port);
    await client.send(one + two);
    await client.finished;
    const responses = [...client.transcript.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    const { changes } = await log.take();
    expect([responses, changes.length > 0]).toEqual([['201'], true]);
    expect((await ask(whole(operation, await partsOf(operation)))).head.status).toBe(201);
  });

  it('serves consecutive requests on one connection, each with its own response', async () => {
    const operation = find('GET /v2/listeners/{listener_id}');
    const { fields } = await partsOf(operation);
    await using client = await WireClient.connect(port);
    for (let at = 0; at < 20; at += 1) {
      const values = await fillPath(operation, {
        api: scene.api,
        tenant: at % 2 === 0 ? scene.a1 : scene.b1,
      });
      await client.send(head('GET', toPath(operation.path, values), fields));
      const { head: response, text } = await client.readResponse();
      expect([response.status, text.includes(values['listener_id'] ?? '')]).toEqual([
        at % 2 === 0 ? 200 : 404,
        true,
      ]);
    }
  });
});

function find(title: string): Operation {
  const found = scene.operations.find((one) => one.title === title);
  if (found === undefined) throw new Error(`no route ${title}`);
  return found;
}

function isRefusal(text: string): boolean {
  if (text.startsWith('<!doctype html>')) return /<div role="alert"><p>[^<]/.test(text);
  const { detail } = JSON.parse(text);
  return typeof detail === 'string' || Array.isArray(detail) || typeof detail?.message === 'string';
}
