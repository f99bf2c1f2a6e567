// The negotiation in the heads of a WebSocket, and its failures: subprotocols, extensions, echoes of the credential, rejected
// upgrades, frames sent too early.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WireClient } from '../support/wire-client.ts';
import {
  createWebSocketScene,
  INJECTED,
  intercepted,
  received,
  valuesOf,
  type WebSocketScene,
  ways,
} from './websocket-scene.ts';

const DEFLATE = 'permessage-deflate; client_no_context_takeover; server_max_window_bits=10';
/** The response to an upgrade of `/refused/<name>`. */
const refusals: Readonly<Record<string, string>> = {
  length: 'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer\r\nContent-Length: 11\r\n\r\nwho are you',
  chunks: 'HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nnot \r\n3\r\nyou\r\n0\r\n\r\n',
  version: 'HTTP/1.1 426 No\r\nSec-WebSocket-Version: 13, 8\r\nContent-Length: 3\r\n\r\nold',
  close: 'HTTP/1.1 426 No\r\nConnection: close\r\nContent-Length: 5\r\n\r\nclose',
  end: 'HTTP/1.1 403 No\r\n\r\nuntil the end',
};
const upgrades: IncomingMessage[] = [];
let scene: WebSocketScene;

beforeAll(async () => {
  const options = {
    perMessageDeflate: { serverMaxWindowBits: 10, clientNoContextTakeover: true, threshold: 0 },
    handleProtocols: (offered: Set<string>) => [...offered].at(-1) ?? false,
  };
  scene = await createWebSocketScene(options, (request, socket) => {
    upgrades.push(request);
    const [, name = ''] = /^\/refused\/(\w+)$/.exec(String(request.url)) ?? [];
    const response = refusals[name];
    if (response === undefined) return false;
    // Node's server has detached this connection, so it can serve one request only.
    socket.end(response);
    return true;
  });
  scene.server.on('headers', (headers, request) => {
    headers.push(`X-Echo: ${request.headers.authorization ?? 'none'}`, 'X-Other: kept');
  });
  scene.server.on('connection', (socket) => {
    socket.on('message', (message, isBinary) => socket.send(message, { binary: isBinary }));
  });
});
afterAll(() => scene[Symbol.asyncDispose]());

describe.each(ways)('$title', (way) => {
  it('agrees on the subprotocol that the server chose', async () => {
    const { client, server, request } = await scene.open(way, ['one', 'two.v2', 'three']);
    expect(valuesOf(request, 'sec-websocket-protocol')).toEqual(['one,two.v2,three']);
    expect([client.protocol, server.protocol]).toEqual(['three', 'three']);
    client.close();
  });

  it('agrees on compression with the parameters of both, and the frames stay compressed', async () => {
    const { client, request, response } = await scene.open(way, []);
    expect(valuesOf(request, 'sec-websocket-extensions')).toEqual([
      'permessage-deflate; client_max_window_bits',
    ]);
    expect(valuesOf(response, 'sec-websocket-extensions')).toEqual([DEFLATE]);
    expect(client.extensions).toBe('permessage-deflate');
    const message = 'm'.repeat(1_000_000);
    const refresh = received(client, 1);
    client.send(message);
    expect((await refresh)[0] === message).toBe(true);
    expect(request.socket.bytesRead).toBeLessThan(100_000);
    expect(response.socket.bytesRead).toBeLessThan(100_000);
    client.close();
  });

  it('uses no compression when the client offers none', async () => {
    const { client, request, response } = await scene.open(way, [], { perMessageDeflate: false });
    expect(valuesOf(request, 'sec-websocket-extensions')).toEqual([]);
    expect(valuesOf(response, 'sec-websocket-extensions')).toEqual([]);
    client.close();
  });

  it('shows the client no credential in the 101, and everything else as the server wrote it', async () => {
    const { client, response } = await scene.open(way, ['chat']);
    const hasRule = way.host === 'api.test';
    const [echo = ''] = valuesOf(response, 'x-echo');
    expect(echo).toBe(hasRule ? '*'.repeat(INJECTED.length) : 'none');
    expect(valuesOf(response, 'x-other')).toEqual(['kept']);
    expect(valuesOf(response, 'sec-websocket-accept')).toEqual([expect.stringMatching(/^[\w+/]{27}=$/)]);
    expect([valuesOf(response, 'connection'), valuesOf(response, 'upgrade')]).toEqual([
      ['Upgrade'],
      ['websocket'],
    ]);
    client.close();
  });

  it.each([
    ['length', 401, 'who are you'],
    ['chunks', 403, 'not you'],
    ['version', 426, 'old'],
    ['close', 426, 'close'],
    ['end', 403, 'until the end'],
  ])('gets a rejected upgrade (%s) with its body', async (name, status, body) => {
    const client = await scene.dial(way, `/refused/${name}`);
    const [, response] = await once(client, 'unexpected-response');
    expect([response.statusCode, await text(response)]).toEqual([status, body]);
    if (name === 'version') expect(valuesOf(response, 'sec-websocket-version')).toEqual(['13, 8']);
    const keys = valuesOf(upgrades.at(-1)!, 'authorization');
    expect(keys).toEqual(way.host === 'api.test' ? [INJECTED] : []);
  });
});

describe('a client that does not wait for its 101', () => {
  it.each<[string, number]>([
    ['a frame', 1],
    ['many frames', 100],
  ])('gets responses to %s, in order', async (_, count) => {
    const authority = scene.authorityOf(intercepted);
    const tls = { ca: scene.proxyCa, name: 'api.test' };
    await using client = await WireClient.connectThrough(scene.proxy.port, authority, tls);
    const texts = Array.from({ length: count }, (__, i) => `early ${i}`);
    const upgrade = [
      'GET /early HTTP/1.1',
      `Host: ${authority}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ];
    await client.send(
      Buffer.concat([Buffer.from([...upgrade, '', ''].join('\r\n')), ...texts.map(maskedText)]),
    );
    const { status, headers } = await client.readHead();
    expect(status).toBe(101);
    // RFC 6455 §1.3: the accept value of this key.
    expect(headers).toContainEqual(['Sec-WebSocket-Accept', 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=']);
    await client.send(maskedText('late'));
    const responses = await client.readThrough('late');
    const expected = [...texts, 'late'].map((each) => Buffer.concat([frameHead(each, 0), Buffer.from(each)]));
    expect(responses).toBe(Buffer.concat(expected).toString('latin1'));
  });
});

/** A masked text frame, as a client must send it (RFC 6455 §5.2), of fewer than 126 bytes. */
function maskedText(message: string): Buffer {
  const key = Buffer.from([1, 2, 3, 4]);
  const masked = Buffer.from(message).map((byte, i) => byte ^ (key[i % 4] ?? 0));
  return Buffer.concat([frameHead(message, 0x80), key, masked]);
}

function frameHead(message: string, maskBit: number): Buffer {
  return Buffer.from([0x81, maskBit | Buffer.byteLength(message)]);
}
