// Runs of a deployment on their way from its loopback to the platform, which is a recording server here.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingHttpHeaders, request } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { Secret } from '../../../../src/base/secret.ts';
import { createTraceService } from '../../../../src/platform/runner/traces/trace-relay.ts';
import { sendToPlatform } from '../../../../src/platform/runner/traces/trace-sender.ts';
import type { WorkloadService } from '../../../../src/workload/workload.ts';
import { isMissing, openTestWorkloads, script, titled } from '../../../workload/test-workloads.ts';

const TOKEN = `sp_tr_${'canary'.repeat(7)}`;

type Recorded = {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

let received: Recorded[] = [];
let respond: (status?: number) => {
  readonly status: number;
  readonly fields: Record<string, string>;
  body: string;
};
const platform = createHttpServer((incoming, outgoing) => {
  void buffer(incoming).then(
    (body) => {
      const { method, url, headers } = incoming;
      received.push({ method, url, headers, body: body.toString() });
      const { status, fields, body: reply } = respond();
      outgoing.writeHead(status, fields).end(reply);
    },
    () => undefined,
  );
});
let platformUrl: string;
const lines: string[] = [];
const log = createLog('debug', { write: (line) => void lines.push(line) });

const createService = (to = platformUrl): WorkloadService =>
  createTraceService({ log, send: (sending) => sendToPlatform(to, new Secret(TOKEN), sending) });

beforeAll(async () => {
  await once(platform.listen(0, '127.0.0.1'), 'listening');
  platformUrl = `http://127.0.0.1:${(platform.address() as AddressInfo).port}`;
});
afterAll(() => {
  platform.closeAllConnections();
  platform.close();
  expect(lines.join()).not.toContain('canary');
});
beforeEach(() => {
  received = [];
  respond = () => ({ status: 202, fields: { 'Content-Type': 'application/json', Server: 'x' }, body: '{}' });
});

/** The port at which it listens. */
async function serve(service = createService()): Promise<number> {
  const opener = createServer().listen(0, '127.0.0.1');
  await once(opener, 'listening');
  const { port } = opener.address() as AddressInfo;
  const opened = await service.listen((opener as unknown as { readonly _handle: object })._handle);
  onTestFinished(() => opened.close());
  return port;
}

const post = (port: number, path = '/runs', init: RequestInit = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: '{"id":1}', ...init });

describe('the loopback of a deployment', () => {
  it('sends a run on, with the token in place of what its client sent', async () => {
    const port = await serve();
    const headers = { 'content-type': 'application/json', 'x-api-key': 'mine', authorization: 'Bearer mine' };
    const response = await post(port, '/runs', { headers });
    expect([response.status, await response.text(), response.headers.get('server')]).toEqual([
      202,
      '{}',
      null,
    ]);
    const [{ headers: sent, ...rest } = { headers: {} }] = received;
    expect(rest).toEqual({ method: 'POST', url: '/runs', body: '{"id":1}' });
    expect(sent).toEqual({
      ...{ 'content-type': 'application/json', 'content-length': '8', 'x-api-key': TOKEN },
      ...{ host: platformUrl.slice('http://'.length), connection: 'close' },
    });
  });

  it('sends a body without a length in the pieces in which it comes', async () => {
    const port = await serve();
    const piece = Buffer.alloc(300_000, 'a');
    const body = ReadableStream.from([piece, piece, piece]);
    const init = { body, duplex: 'half' } as RequestInit;
    expect((await post(port, '/runs/multipart', init)).status).toBe(202);
    expect(received[0]?.body.length).toBe(900_000);
  });

  it('frames every body, so that none of it is read as another request with the address of the runner', async () => {
    const hidden = 'POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n';
    const port = await serve();
    const { promise: ended, resolve } = Promise.withResolvers<string>();
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    void text(socket).then(resolve);
    const size = Buffer.byteLength(hidden).toString(16);
    socket.write(
      `GET /info HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${hidden}\r\n0\r\n\r\n`,
    );
    expect(await ended).toMatch(/^HTTP\/1\.1 400 /);
    for (const method of ['GET', 'PATCH'])
      await sendToPlatform(platformUrl, new Secret(TOKEN), {
        ...{ method, path: '/info', fields: {}, signal: new AbortController().signal },
        body: Readable.from([Buffer.from(hidden)]),
      });
    expect(received.map(({ url, body }) => [url, body])).toEqual([
      ['/info', hidden],
      ['/info', hidden],
    ]);
  });

  it.each(['/sessions', '/runs/query', '/runs?a=1', '/v2/deployments'])(
    'has nothing at %s, which the platform never sees',
    async (path) => {
      const port = await serve();
      expect((await post(port, path)).status).toBe(404);
      expect(received).toEqual([]);
    },
  );

  it('hands on why a run was refused, and when to try again', async () => {
    const port = await serve();
    respond = () => ({ status: 429, fields: { 'Retry-After': '7', 'Set-Cookie': 'a=b' }, body: 'wait' });
    const response = await post(port);
    expect([response.status, await response.text()]).toEqual([429, 'wait']);
    expect([response.headers.get('retry-after'), response.headers.get('set-cookie')]).toEqual(['7', null]);
  });

  it('is unavailable while the platform is', async () => {
    const port = await serve(createService('http://127.0.0.1:1'));
    const response = await post(port);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
  });

  it('hands on a refusal that comes before the body has ended', async () => {
    const early = createHttpServer((_, outgoing) => void outgoing.writeHead(413).end('too large'));
    await once(early.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void early.close());
    const port = await serve(createService(`http://127.0.0.1:${(early.address() as AddressInfo).port}`));
    const sent = request({ port, host: '127.0.0.1', path: '/runs', method: 'POST' });
    sent.on('error', () => undefined).write('{');
    const [response] = await once(sent, 'response');
    expect([response.statusCode, await text(response)]).toEqual([413, 'too large']);
    sent.destroy();
  });

  it('ends a request to the platform when its client leaves', async () => {
    const gone = Promise.withResolvers<void>();
    const waiting = createHttpServer((incoming) =>
      incoming.socket.once('close', () => gone.resolve()).resume(),
    );
    await once(waiting.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void waiting.close());
    const began = once(waiting, 'request');
    const port = await serve(createService(`http://127.0.0.1:${(waiting.address() as AddressInfo).port}`));
    const sent = request({ port, host: '127.0.0.1', path: '/runs', method: 'POST' }).on(
      'error',
      () => undefined,
    );
    sent.write('{');
    await began;
    sent.destroy();
    await gone.promise;
  });

  it('sends at most eight requests at once, and has at most 64 connections', async () => {
    const held = Promise.withResolvers<void>();
    const service = createTraceService({
      log,
      send: () => held.promise.then(() => ({ status: 202, fields: {}, body: Buffer.alloc(0) })),
    });
    const port = await serve(service);
    let refused = 0;
    const four = Promise.withResolvers<void>();
    const all = Array.from({ length: 12 }, async () => {
      const { status } = await post(port);
      if (status === 429) refused += 1;
      if (refused === 4) four.resolve();
      return status;
    });
    await four.promise;
    held.resolve();
    expect((await Promise.all(all)).toSorted()).toEqual([...Array(8).fill(202), ...Array(4).fill(429)]);
    const sockets = Array.from({ length: 80 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
    await Promise.all(sockets.slice(-10).map((socket) => once(socket, 'close')));
  });
});

describe.skipIf(isMissing('bubblewrap'))(titled('an isolated deployment', 'bubblewrap'), () => {
  it('reaches the runs of the platform at its own loopback, nothing else of it, and never has the token', async () => {
    await using opened = await openTestWorkloads('bubblewrap');
    const call = 'curl -sS --max-time 10 -o /dev/null -w "%{http_code}\\n"';
    const {
      lines: printed,
      complaints,
      ended,
    } = await opened.start({
      ...script(
        `${call} --json "{}" http://127.0.0.1:3126/runs
         ${call} http://127.0.0.1:3126/sessions
         ${call} --path-as-is http://127.0.0.1:3126/runs/../sessions
         ${call} -x "$HTTP_PROXY" --noproxy "" "$1/runs"
         curl -s --noproxy "*" --max-time 5 "$1/runs" || echo unreachable
         cat /proc/self/environ /proc/[0-9]*/cmdline /proc/[0-9]*/environ /etc/* 2>/dev/null | grep -ac 'can[a]ry'`,
        platformUrl,
      ),
      network: {
        group: randomUUID(),
        policy: { version: 1, document: {}, secrets: {} },
        services: [createService()],
      },
    });
    await ended;
    expect(printed, complaints.join('\n')).toEqual(['202', '404', '404', '403', 'unreachable', '0']);
    expect(received.map(({ method, url, headers }) => [method, url, headers['x-api-key']])).toEqual([
      ['POST', '/runs', TOKEN],
    ]);
  });

  it('shares its service with no other one', async () => {
    await using opened = await openTestWorkloads('bubblewrap');
    const network = { group: randomUUID(), policy: { version: 1, document: {}, secrets: {} } };
    const traced = await opened.start({
      ...script('echo ready; sleep 600'),
      network: { ...network, services: [createService()] },
    });
    await traced.line('ready');
    const other = await opened.start({
      ...script('curl -s --noproxy "*" --max-time 5 http://127.0.0.1:3126/info || echo unreachable'),
      network,
    });
    await other.ended;
    expect(other.lines).toEqual(['unreachable']);
    await traced.workload.stop(0);
  });
});

describe.skipIf(isMissing('none'))('a workload without a network namespace', () => {
  it('has no services', async () => {
    await using opened = await openTestWorkloads('none');
    const starting = opened.start({
      network: {
        group: randomUUID(),
        policy: { version: 1, document: {}, secrets: {} },
        services: [createService()],
      },
    });
    await expect(starting).rejects.toThrow('services: there is no network namespace here');
  });
});
