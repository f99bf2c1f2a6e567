// The HTTP/2 test peers against node:http2 and curl as independent implementations: the peers read what those send, and
// those accept or refuse what the raw client sends.
import {
  type ClientHttp2Session,
  connect,
  constants,
  createSecureServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  sensitiveHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { isInstalled } from '../interop/client-programs.ts';
import { dataFrame, errorOf, pingFrame } from './h2-frames.ts';
import { createH2Origin } from './h2-origin.ts';
import { fieldOf, H2WireClient } from './h2-wire-client.ts';
import { indexed, literal, tableSize } from './hpack.ts';
import { createScratch } from './scratch.ts';
import { runToEnd } from './spawned-process.ts';
import { createTestAuthority } from './test-authority.ts';

const authority = createTestAuthority();
const tls = { authority, names: ['good.test', 'localhost'] };
const trust = { ca: authority.certificatePem, name: 'good.test' };
const big = Buffer.alloc(300_000, 'sixteen bytes..\n');

type NodeResponse = { readonly headers: IncomingHttpHeaders; readonly text: string };

function askByNode(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: Buffer,
): Promise<NodeResponse> {
  const stream = session.request(headers, { endStream: body === undefined });
  if (body) stream.end(body);
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  return new Promise((resolve, reject) => {
    let head: IncomingHttpHeaders = {};
    stream.on('response', (headers) => (head = headers));
    stream.on('error', reject);
    stream.on('end', () => resolve({ headers: head, text: Buffer.concat(pieces).toString() }));
  });
}

describe('the recording origin', () => {
  it('reads what node:http2 sends: Huffman, the dynamic table, never-indexed fields, bodies', async () => {
    await using origin = await createH2Origin({ tls });
    const session = connect(`https://localhost:${origin.port}`, { ca: authority.certificatePem });
    // Padded with letters of five bits, because nghttp2 uses Huffman only where it is shorter.
    const values = Array.from({ length: 256 }, (_, byte) => 'a'.repeat(20) + String.fromCharCode(byte));
    const allowed = values.filter((value) => !/[\0-\x08\x0a-\x1f\x7f]/.test(value));
    for (const value of allowed) await askByNode(session, { ':path': '/', 'x-v': value, 'x-same': value });
    expect(origin.streams.map((stream) => stream.values('x-v'))).toEqual(allowed.map((value) => [value]));
    expect(origin.streams.map((stream) => stream.values('x-same'))).toEqual(allowed.map((value) => [value]));
    const fields = { authorization: 'Bearer s', 'x-k': 'k', [sensitiveHeaders]: ['x-k'] };
    const { text } = await askByNode(session, { ':method': 'POST', ...fields }, big);
    expect(JSON.parse(text)).toMatchObject({ method: 'POST', body: { length: big.length } });
    expect(origin.streams.at(-1)?.neverIndexed).toContain('x-k');
    expect(origin.connections).toHaveLength(1);
    session.destroy();
  });

  it.runIf(isInstalled('curl'))('serves curl over both protocols, uploads too', async () => {
    await using origin = await createH2Origin({ tls });
    await using scratch = await createScratch();
    const file = await scratch.write('big', big.toString());
    const ca = await scratch.write('ca.pem', authority.certificatePem);
    const url = `https://localhost:${origin.port}/c?d`;
    const curl = (...args: readonly string[]) =>
      runToEnd('curl', ['--silent', '--show-error', '--cacert', ca, ...args, url]);
    const over2 = await curl('--http2', '--upload-file', file, '-H', 'X-Up: Case');
    expect(over2).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(over2.stdout)).toMatchObject({
      method: 'PUT',
      target: '/c?d',
      body: { length: big.length },
    });
    expect(origin.streams[0]?.values('x-up')).toEqual(['Case']);
    expect(await curl('--http1.1')).toMatchObject({ code: 0, stderr: '' });
    expect(origin.http1.requests[0]).toMatchObject({ target: '/c?d' });
  });
});

describe('the raw client', () => {
  it('is understood by node:http2, and reads its responses', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const server = createSecureServer({
      SNICallback: (name, done) => done(null, authority.contextFor(name)),
    });
    server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      seen.push(headers);
      stream.additionalHeaders({ ':status': 103, link: '</a>' });
      stream.respond(
        { 'x-a': 'Ü and more of it', 'x-n': '1', [sensitiveHeaders]: ['x-n'] },
        { waitForTrailers: true },
      );
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-t': 'end' }));
      stream.pipe(stream);
    });
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
    await using client = await H2WireClient.connect(port, trust);
    const custom: [string, string, 'indexing'] = ['x-first', 'in the table', 'indexing'];
    const first = await client.request(client.fields('/', [custom], { ':method': 'POST' }), { body: big });
    expect(first).toMatchObject({
      status: 200,
      interim: [{ status: 103, headers: [['link', '</a>']] }],
      neverIndexed: ['x-n'],
      length: big.length,
      trailers: [['x-t', 'end']],
    });
    expect(fieldOf(first, 'x-a')).toBe('Ü and more of it');
    const byIndex = [indexed(2), indexed(7), literal(1, client.authority), indexed(4), indexed(62)];
    const second = await client.request([...byIndex, literal(62, 'by name')], { isEnd: true });
    expect(second).toMatchObject({ status: 200, headers: expect.arrayContaining([['x-n', '1']]) });
    expect(seen[1]).toMatchObject({ ':method': 'GET', 'x-first': 'in the table, by name' });
    await client.request([tableSize(0), ...client.fields('/emptied')]);
    expect(seen[2]?.[':path']).toBe('/emptied');
    // node closes the connection, because the entry is no longer in its table.
    await client.open([...client.fields('/'), indexed(62)], { isEnd: true });
    expect(await client.goaway()).toMatchObject({ code: 'COMPRESSION_ERROR' });
    server.close();
  });

  it('gets the specified errors from node:http2 for bad frames', async () => {
    const server = createSecureServer({
      SNICallback: (name, done) => done(null, authority.contextFor(name)),
    });
    server.on('sessionError', () => undefined);
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
    await using client = await H2WireClient.connect(port, trust);
    const upper = await client.request(client.fields('/', [['X-Upper', '1']]));
    expect(upper.reset).toBe('PROTOCOL_ERROR');
    const { payload } = await client.frame(({ type }) => type === 'RST_STREAM');
    expect(payload.readUInt32BE(0)).toBe(constants.NGHTTP2_PROTOCOL_ERROR);
    await client.send(pingFrame('12345678'));
    expect(await client.frame(({ type }) => type === 'PING')).toMatchObject({
      flags: 1,
      payload: Buffer.from('12345678'),
    });
    await client.send(dataFrame(99, 'on an idle stream'));
    expect(await client.goaway()).toMatchObject({ code: 'PROTOCOL_ERROR' });
    expect(errorOf(await client.frame(({ type }) => type === 'RST_STREAM'))).toBe('PROTOCOL_ERROR');
    await client.closed;
    server.close();
  });
});
