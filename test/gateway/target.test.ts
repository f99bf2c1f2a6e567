// What an owner decides besides where a request goes: the path that is forwarded, the fields of the response, how long the grant
// holds, and the format of refusals.
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { GatewayRequest, Grant, Target } from '../../src/gateway/target.ts';
import { createGatewayScene, type GatewayScene, type SceneOptions } from './gateway-scene.ts';
import { type NodeHandler, openNodeTarget } from './node-target.ts';

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

type Options = Omit<SceneOptions, 'targets' | 'findTarget'> & { readonly target?: Partial<Target> };

async function gatewayTo(
  handle: NodeHandler,
  { target = {}, ...options }: Options = {},
): Promise<GatewayScene> {
  const { port, ...opened } = await openNodeTarget(handle);
  stack.push({ [Symbol.asyncDispose]: opened[Symbol.asyncDispose] });
  const found: Target = { name: 'app', address: { host: '127.0.0.1', port }, ...target };
  const made = await createGatewayScene({ ...options, findTarget: () => found });
  stack.push(made);
  return made;
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: app.test\r\n\r\n`;
const echo: NodeHandler = ({ url }, outgoing) => void outgoing.end(url);

describe('the prefix of a target', () => {
  it.each([
    ['/boxes/1/execute', '/execute'],
    ['/boxes/1/a%2Fb/../c?path=/x&y=%00', '/a%2Fb/../c?path=/x&y=%00'],
    ['/boxes/1//evil.test/', '//evil.test/'],
    ['/boxes/1/boxes/1/', '/boxes/1/'],
    ['/boxes/1', '/'],
    ['/boxes/1?a', '/?a'],
    ['/boxes/1/?', '/?'],
  ])('is removed, and nothing else: %s', async (path, forwarded) => {
    const gateway = await gatewayTo(echo, { target: { prefix: '/boxes/1' } });
    await using client = await gateway.connect();
    await client.send(get(path));
    expect((await client.readResponse()).text).toBe(forwarded);
  });

  it.each(['/boxes/12/x', '/boxes/1%2Fx', '/Boxes/1/x', '/'])(
    'that is not that of the path is a 500: %s',
    async (path) => {
      const gateway = await gatewayTo(echo, { target: { prefix: '/boxes/1' } });
      await using client = await gateway.connect();
      await client.send(get(path));
      expect((await client.readResponse()).head.status).toBe(500);
    },
  );
});

describe('the fields of a response', () => {
  const responseFields = (fields: readonly string[]): readonly string[] => [
    ...fields.flatMap((name, at) =>
      at % 2 === 0 && name.toLowerCase() !== 'set-cookie' ? [name, fields[at + 1] ?? ''] : [],
    ),
    ...['X-Content-Type-Options', 'nosniff'],
  ];

  it('are made with their status', async () => {
    const gateway = await gatewayTo((_, outgoing) => void outgoing.writeHead(302).end(), {
      target: { responseFields: (_, status) => ['X-Status', String(status), 'Content-Length', '0'] },
    });
    await using client = await gateway.connect();
    await client.send(get('/'));
    expect((await client.readResponse()).head.headers).toContainEqual(['X-Status', '302']);
  });

  it('are those that the owner makes of them, after those of the hop', async () => {
    const gateway = await gatewayTo(
      (_, outgoing) => {
        outgoing.writeHead(200, ['Set-Cookie', 'a=1', 'X-A', '1', 'Content-Length', '2', 'Alt-Svc', 'x']);
        outgoing.end('ok');
      },
      { target: { responseFields } },
    );
    await using client = await gateway.connect();
    await client.send(get('/'));
    const { head, text } = await client.readResponse();
    expect(text).toBe('ok');
    const fields = head.headers.filter(([name]) => !/^(?:date|connection)$/i.test(name));
    expect(fields).toEqual([
      ['X-A', '1'],
      ['Content-Length', '2'],
      ['X-Content-Type-Options', 'nosniff'],
    ]);
  });
});

describe('a grant', () => {
  const fieldsOf: NodeHandler = ({ rawHeaders }, outgoing) => void outgoing.end(JSON.stringify(rawHeaders));
  const seen = async (grant: Grant, sent = ''): Promise<readonly string[]> => {
    const gateway = await gatewayTo(fieldsOf, { authorize: () => grant, credentialFields: ['x-own'] });
    await using client = await gateway.connect();
    await client.send(`GET / HTTP/1.1\r\nHost: app.test\r\n${sent}\r\n`);
    const raw: readonly string[] = JSON.parse((await client.readResponse()).text);
    return raw.flatMap((name, at) => (at % 2 === 0 ? [`${name.toLowerCase()}: ${raw[at + 1]}`] : []));
  };

  it('adds fields, in place of those that the client has sent', async () => {
    const fields = await seen({ adds: [['X-Own', 'mine']] }, 'X-Own: theirs\r\nX_OWN: theirs\r\n');
    expect(fields.filter((field) => field.includes('own'))).toEqual(['x-own: mine']);
  });

  it('says who the client is behind a proxy', async () => {
    const client = { address: '192.0.2.7', scheme: 'https' } as const;
    const fields = await seen({ client }, 'X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: ftp\r\n');
    expect(fields.filter((field) => field.startsWith('x-forwarded'))).toEqual([
      ...['x-forwarded-for: 192.0.2.7', 'x-forwarded-host: app.test', 'x-forwarded-proto: https'],
    ]);
  });

  it.each(['while it is open', 'before the target has upgraded it'])(
    'whose client is to connect again asks the client of a WebSocket to, %s',
    async (when) => {
      const leaving = new AbortController();
      const server = await webSockets();
      if (when !== 'while it is open') server.on('headers', () => leaving.abort());
      const gateway = await gatewayOn(server, { authorize: () => ({ leaving: leaving.signal }) });
      const client = dial(gateway);
      const closed = once(client, 'close');
      const [[socket]] = await Promise.all([once(server, 'connection'), once(client, 'open')]);
      const inside = once(socket as WebSocket, 'close');
      leaving.abort();
      expect((await Promise.all([closed, inside])).map(([code]) => code)).toEqual([1001, 1001]);
      expect(await gateway.record(0)).toMatchObject({ status: 101, end: 'complete' });
    },
  );

  it('ends once with its exchange, however that ends', async () => {
    const ended: string[] = [];
    const authorize = ({ target }: GatewayRequest): Grant => ({ onEnd: () => void ended.push(target) });
    const gateway = await gatewayTo(
      ({ url }, outgoing) => void (url === '/cut' ? outgoing.destroy() : outgoing.end()),
      {
        authorize,
      },
    );
    await using client = await gateway.connect();
    for (const path of ['/ok', '/cut']) {
      await client.send(get(path));
      await client.readResponse();
    }
    expect(ended).toEqual(['/ok', '/cut']);
  });

  it('that comes when the client has left ends at once', async () => {
    const ended = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const gateway = await gatewayTo(echo, {
      authorize: async ({ signal }) => {
        asked.resolve();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return { onEnd: () => ended.resolve() };
      },
    });
    await using client = await gateway.connect();
    await client.send(get('/'));
    await asked.promise;
    client.reset();
    await ended.promise;
  });

  it('that is withdrawn cuts a response that is being sent', async () => {
    const withdrawing = new AbortController();
    const left = Promise.withResolvers<void>();
    const gateway = await gatewayTo(
      (_, outgoing: ServerResponse) => void outgoing.on('close', () => left.resolve()).write('first'),
      { authorize: () => ({ signal: withdrawing.signal }) },
    );
    await using client = await gateway.connect();
    await client.send(get('/'));
    await client.readThrough('first');
    withdrawing.abort();
    expect(await client.finished).toBe('ECONNRESET');
    await left.promise;
    expect(await gateway.record(0)).toMatchObject({ status: 200, end: 'cut' });
  });

  it('that is withdrawn cuts a WebSocket on both sides', async () => {
    const withdrawing = new AbortController();
    const server = await webSockets();
    const gateway = await gatewayOn(server, { authorize: () => ({ signal: withdrawing.signal }) });
    const client = dial(gateway);
    const [[socket]] = await Promise.all([once(server, 'connection'), once(client, 'open')]);
    withdrawing.abort();
    const codes = await Promise.all([once(client, 'close'), once(socket as WebSocket, 'close')]);
    expect(codes.map(([code]) => code)).toEqual([1006, 1006]);
  });
});

async function webSockets(): Promise<WebSocketServer> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  stack.push({
    async [Symbol.asyncDispose]() {
      for (const one of server.clients) one.terminate();
      await new Promise<void>((done) => server.close(() => done()));
    },
  });
  return server;
}

async function gatewayOn(server: WebSocketServer, options: SceneOptions = {}): Promise<GatewayScene> {
  const { port } = server.address() as { readonly port: number };
  const made = await createGatewayScene({ targets: { 'app.test': { host: '127.0.0.1', port } }, ...options });
  stack.push(made);
  return made;
}

const dial = ({ port }: GatewayScene): WebSocket =>
  new WebSocket(`ws://127.0.0.1:${port}/ws`, { headers: { Host: 'app.test' } }).on('error', () => undefined);

describe('the end of a gateway', () => {
  it('asks the client of a WebSocket to connect again, behind the message that is being sent', async () => {
    const server = await webSockets();
    const gateway = await gatewayOn(server);
    const client = dial(gateway);
    const upgraded = once(client, 'upgrade') as Promise<[IncomingMessage]>;
    const [[socket], [response]] = await Promise.all([once(server, 'connection'), upgraded]);
    const got: number[] = [];
    client.on('message', (data: Buffer) => got.push(data.length));
    (socket as WebSocket).send(Buffer.alloc(8_000_000));
    await once(response.socket, 'data');
    const closed = gateway.gateway.close(10_000);
    const codes = Promise.all([once(client, 'close'), once(socket as WebSocket, 'close')]);
    expect((await codes).map(([code]) => code)).toEqual([1001, 1001]);
    await closed;
    expect(got).toEqual([8_000_000]);
    expect(await gateway.record(0)).toMatchObject({ status: 101, end: 'complete' });
  });

  it('asks all clients, and waits for no silent one beyond the deadline', async () => {
    const server = await webSockets();
    const gateway = await gatewayOn(server);
    const clients = [dial(gateway), dial(gateway)];
    await Promise.all(clients.map((client) => once(client, 'open')));
    const codes = Promise.all(clients.map((client) => once(client, 'close')));
    await using raw = await gateway.connect();
    await raw.send(
      'GET /ws HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    );
    await raw.readHead();
    await gateway.gateway.close(50);
    expect((await codes).map(([code]) => code)).toEqual([1001, 1001]);
    expect((await raw.readSome())?.toString('hex')).toBe('880203e9');
    expect(await raw.finished).toBe('ECONNRESET');
  });
});

describe('a refusal in the format of the owner', () => {
  const writeRefusal: SceneOptions['writeRefusal'] = ({ name, code, message }) => ({
    detail: { error: name ?? code, message },
  });

  it.each([
    ['of the gateway', 'GET / HTTP/3.0\r\n\r\n', 505, 'version_refused'],
    ['of a request without a target', get('/'), 404, 'target_not_found'],
    ['of a target that is away', get('/').replace('app.test', 'away.test'), 502, 'target_unreachable'],
  ])('%s', async (_, bytes, status, error) => {
    const targets = { 'away.test': { host: '127.0.0.1', port: 1 } };
    await using gateway = await createGatewayScene({ targets, writeRefusal });
    await using client = await gateway.connect();
    await client.send(bytes);
    const { head, text } = await client.readResponse();
    expect([head.status, JSON.parse(text).detail.error]).toEqual([status, error]);
  });
});

it('an address that many clients share is not limited by itself', async () => {
  const limits = { maxConnectionsPerAddress: 1, maxConnections: 2 };
  await using gateway = await createGatewayScene({
    limits,
    limitsAddress: (address) => address !== '127.0.0.1',
  });
  await using first = await gateway.connect();
  await using second = await gateway.connect();
  for (const client of [first, second]) {
    await client.send(get('/'));
    expect((await client.readResponse()).head.status).toBe(404);
  }
  await using third = await gateway.connect();
  expect((await third.readResponse()).head.status).toBe(503);
});
