// I12: response N goes to the client that sent request N. Each request carries a nonce that the origin signs into its
// response. A response that belongs to another request, or to none, is recognized by its signature.
import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headerValues } from '../support/message-reader.ts';
import { type Exchange, type OriginRequest, response } from '../support/recording-origin.ts';
import { runs } from '../support/run-size.ts';
import type { WireClient } from '../support/wire-client.ts';
import { type Scene, createScene, head } from './credential-scene.ts';

function sign(nonce: string, target: string): string {
  return createHmac('sha256', 'the origin').update(`${target} ${nonce}`).digest('hex');
}

function signatureOf(request: OriginRequest): string {
  return sign(headerValues(request, 'x-nonce')[0] ?? '', request.target);
}

async function signed({ request, readBody, send }: Exchange): Promise<void> {
  await readBody();
  await send(response(200, [], signatureOf(request)));
}

let lastNonce = 0;

/** A request with a fresh nonce, and the only response text that is right for it. */
function ask(scene: Scene, path: string, method = 'GET'): { readonly bytes: string; readonly reply: string } {
  lastNonce += 1;
  const nonce = `n${lastNonce}`;
  return { bytes: head(`${method} ${path}`, scene.at(), [`X-Nonce: ${nonce}`]), reply: sign(nonce, path) };
}

async function expectRight(client: WireClient, scene: Scene, path: string): Promise<void> {
  const { bytes, reply } = ask(scene, path);
  await client.send(bytes);
  expect((await client.readResponse()).text).toBe(reply);
}

describe('I12 right response: one client', () => {
  type Form = (signature: string) => string;
  const forms: Readonly<Record<string, Form>> = {
    length: (text) => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
    chunked: (text) =>
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
    interim: (text) =>
      `HTTP/1.1 103 Early Hints\r\nX-A: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
    empty: (text) => `HTTP/1.1 204 No Content\r\nX-Signature: ${text}\r\n\r\n`,
    unmodified: (text) => `HTTP/1.1 304 Not Modified\r\nContent-Length: 999\r\nX-Signature: ${text}\r\n\r\n`,
    zero: (text) => `HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nX-Signature: ${text}\r\n\r\n`,
    head: (text) => `HTTP/1.1 200 OK\r\nContent-Length: 999\r\nX-Signature: ${text}\r\n\r\n`,
  };

  async function readSignature(client: WireClient): Promise<string> {
    let reply = await client.readHead();
    if (reply.status === 103) reply = await client.readHead();
    const [signature] = headerValues(reply, 'x-signature');
    return signature ?? (await client.readBody()).content.toString();
  }

  it('I12 right response: pipelined requests get their responses in order, with any framing', async () => {
    await using scene = await createScene({
      async respond({ request, readBody, send }) {
        await readBody();
        await send(forms[request.target.slice(1)]?.(signatureOf(request)) ?? '');
      },
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...Object.keys(forms)), { minLength: 1, maxLength: 20 }),
        async (wanted) => {
          const asked = wanted.map((form) => ask(scene, `/${form}`, form === 'head' ? 'HEAD' : 'GET'));
          await using client = await scene.tunnel();
          await client.send(asked.map(({ bytes }) => bytes).join(''));
          const got: string[] = [];
          for (const _ of wanted) got.push(await readSignature(client));
          expect(got).toEqual(asked.map(({ reply }) => reply));
        },
      ),
      { numRuns: runs(40, 10) },
    );
  });

  it('I12 right response: refusals are sent in the order of their requests', async () => {
    await using scene = await createScene({ respond: signed });
    await using client = await scene.tunnel();
    const [first, last] = [ask(scene, '/1'), ask(scene, '/3')];
    const refused = head('GET /2', scene.at(), ['Expect: something']);
    await client.send(`${first.bytes}${refused}${last.bytes}`);
    expect((await client.readResponse()).text).toBe(first.reply);
    expect((await client.readResponse()).head.status).toBe(417);
    expect(await client.readToEnd()).toBe('');
    expect(scene.origin.requests).toHaveLength(1);
  });

  it.each(['FIN', 'RST'])(
    'I12 right response: no response follows one that was truncated by %s',
    async (cut) => {
      await using scene = await createScene({
        async respond(exchange) {
          if (exchange.request.target !== '/cut') return signed(exchange);
          await exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
          if (cut === 'FIN') exchange.end();
          else exchange.reset();
        },
      });
      await using client = await scene.tunnel();
      await client.send(`${ask(scene, '/cut').bytes}${ask(scene, '/next').bytes}`);
      expect((await client.readHead()).status).toBe(200);
      await client.finished;
      expect(client.transcript.endsWith('half')).toBe(true);
      expect(scene.origin.requests.map(({ target }) => target)).toEqual(['/cut']);
    },
  );
});

describe('I12 right response: many clients over pooled connections', () => {
  it('I12 right response: each waiting client gets its own response while other clients disconnect', async () => {
    const turns = (count: number): Promise<void> =>
      count === 0
        ? Promise.resolve()
        : new Promise<void>((next) => setImmediate(next)).then(() => turns(count - 1));
    await using scene = await createScene({
      async respond(exchange) {
        const { request, readBody, send } = exchange;
        const [, pace = '0', how] = request.target.split('/');
        await readBody();
        await turns(Number(pace));
        const text = signatureOf(request);
        await send(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text.slice(0, 20)}`);
        await turns(Number(pace));
        if (how === 'cut') exchange.reset();
        else await send(text.slice(20));
      },
    });
    const step = fc.record({
      pace: fc.integer({ min: 0, max: 4 }),
      how: fc.constantFrom('stay', 'stay', 'stay', 'leave', 'reset', 'cut'),
    });
    const clients = fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { minLength: 2, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(clients, async (scripts) => {
        await Promise.all(
          scripts.map(async (script) => {
            await using client = await scene.tunnel();
            for (const { pace, how } of script) {
              const { bytes, reply } = ask(scene, `/${pace}/${how}`);
              await client.send(bytes);
              if (how === 'stay') {
                expect((await client.readResponse()).text).toBe(reply);
                continue;
              }
              if (how === 'cut' || pace > 1) await client.readHead().catch(() => undefined);
              if (how === 'reset') client.reset();
              return;
            }
          }),
        );
      }),
      { numRuns: 25 },
    );
    // Without shared connections this test would prove nothing.
    expect(scene.origin.connections).toBeLessThan(scene.origin.requests.length);
  });

  it('I12 right response: the response to a client that disconnected goes to no other client', async () => {
    const gate = Promise.withResolvers<void>();
    await using scene = await createScene({
      async respond(exchange) {
        if (exchange.request.target === '/slow') await gate.promise;
        await signed(exchange).catch(() => undefined);
      },
    });
    await using leaving = await scene.tunnel();
    await expectRight(leaving, scene, '/warm');
    await leaving.send(ask(scene, '/slow').bytes);
    await scene.origin.request(1);
    leaving.end();
    await scene.proxy.record(1);
    await using staying = await scene.tunnel();
    const { bytes, reply } = ask(scene, '/fast');
    await staying.send(bytes);
    await scene.origin.request(2);
    gate.resolve();
    expect((await staying.readResponse()).text).toBe(reply);
    expect(scene.origin.requests.map(({ connection }) => connection)).toEqual([0, 0, 1]);
  });
});

describe('I12 right response: bytes after the end of a response', () => {
  const POISON = String(response(200, [], 'poison'));
  /** `reply` is the response itself; `extra` is sent after its end. */
  type Row = readonly [why: string, method: string, reply: (signature: string) => string, extra: string];
  const length = (text: string): string => `200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
  const chunked = (text: string): string =>
    `200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n${text}\r\n0\r\n\r\n`;
  const rows: readonly Row[] = [
    ['a second response', 'GET', length, POISON],
    ['a body longer than its length', 'GET', length, 'poison'],
    ['a second response after chunks', 'GET', chunked, POISON],
    ['a body after 204', 'GET', () => '204 No Content\r\n\r\n', POISON],
    ['a body after 304', 'GET', () => `304 Not Modified\r\nContent-Length: 6\r\n\r\n`, POISON],
    ['a body to HEAD', 'HEAD', () => `200 OK\r\nContent-Length: 6\r\n\r\n`, POISON],
    ['an interim response after the final one', 'GET', length, 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['an empty line', 'GET', length, '\r\n'],
  ];
  const RECORD_BYTES = 16_384;

  /** The response fills one TLS record, so that the extra bytes come in a record of their own in the same segment. */
  function inTwoRecords(reply: string, extra: string): string {
    const at = reply.indexOf('\r\n') + 2;
    const padding = 'p'.repeat(RECORD_BYTES - 'HTTP/1.1 X-Pad: \r\n'.length - reply.length);
    return `HTTP/1.1 ${reply.slice(0, at)}X-Pad: ${padding}\r\n${reply.slice(at)}${extra}`;
  }

  const ways = [
    ['in one record', (reply: string, extra: string) => `HTTP/1.1 ${reply}${extra}`],
    ['in two records', inTwoRecords],
  ] as const;
  const cases = rows.flatMap((row) => ways.map(([name, join]) => [row[0], name, row, join] as const));
  it.each(cases)('I12 right response: %s, %s, reaches no other request', async (_, __, row, join) => {
    const [, method, reply, extra] = row;
    await using scene = await createScene({
      async respond(exchange) {
        if (exchange.request.target !== '/poisoned') return signed(exchange);
        await exchange.send(join(reply(signatureOf(exchange.request)), extra));
      },
    });
    await using client = await scene.tunnel();
    // The next request has already arrived; it must not be sent on a connection with unread bytes.
    const [first, second] = [ask(scene, '/poisoned', method), ask(scene, '/next')];
    await client.send(`${first.bytes}${second.bytes}`);
    await client.readThrough(second.reply);
    await using other = await scene.tunnel();
    await expectRight(other, scene, '/other');
    expect(`${client.transcript}${other.transcript}`).not.toMatch(/poison(?!ed)/);
    expect(client.transcript).not.toContain('100 Continue');
    expect(client.transcript.match(/HTTP\/1\.1/g)).toHaveLength(2);
    expect(scene.origin.requests.map(({ connection }) => connection)).toEqual([0, 1, 1]);
  });

  it('I12 right response: an unsolicited response on an idle connection closes the connection', async () => {
    const idle = Promise.withResolvers<Exchange>();
    await using scene = await createScene({
      async respond(exchange) {
        await signed(exchange);
        idle.resolve(exchange);
      },
    });
    await using client = await scene.tunnel();
    await expectRight(client, scene, '/first');
    const { send, reader } = await idle.promise;
    await send('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n');
    await reader.finished;
    await expectRight(client, scene, '/second');
    expect(scene.origin.requests.map(({ connection }) => connection)).toEqual([0, 1]);
  });
});
