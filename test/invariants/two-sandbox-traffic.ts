// The clients of both sandboxes, all at once: keep-alive and short connections, HTTP/1.1 and HTTP/2, TLS sessions that are
// resumed and that are tried at the other sandbox, clients that leave, upgrades, and rules that change meanwhile.
import { type ClientHttp2Session, constants } from 'node:http2';
import { expect } from 'vitest';
import { type Random, createRandom } from '../http1/mutation.ts';
import { openH2Tunnel } from '../support/h2-tunnel.ts';
import { WireClient } from '../support/wire-client.ts';
import { type OfferedSession, type Observed, type Received, nonceIn } from './crossings.ts';
import { type BoxName, CALLBACK_HOSTS, RULE_HOST, type TwoBoxes, boxNames } from './two-sandbox-scene.ts';

/** Clients of each box at a time. */
const CLIENTS = 6;
const MAX_REQUESTS = 8;
/** Requests between two changes of the rules. */
const RENEW_EVERY = 400;

export type Traffic = Observed & {
  /** Requests that were sent, and those of them that a client left. */
  readonly sent: number;
  readonly abandoned: number;
  readonly h2: number;
};

/** `count` requests of both boxes together. The sidecar is closed at the end: then every record is written. */
export async function runTraffic(scene: TwoBoxes, count: number, seed: number): Promise<Traffic> {
  const run = new TrafficRun(scene, count);
  await Promise.all(
    boxNames.flatMap((box, i) =>
      Array.from({ length: CLIENTS }, (_, n) => run.client(box, createRandom(seed + 1_000 * i + n))),
    ),
  );
  await scene.proxy[Symbol.asyncDispose]();
  return {
    ids: { A: 'box-a', B: 'box-b' },
    arrivals: scene.arrivals,
    upgraded: scene.upgraded,
    records: scene.proxy.records(),
    ...run.seen,
  };
}

/** Every request with a response arrived, and every kind of traffic took place: what did not happen cannot cross. */
export function expectAll(scene: TwoBoxes, traffic: Traffic, count: number): void {
  const { sent, abandoned, h2, received, sessions, arrivals, records } = traffic;
  expect(sent).toBe(count);
  expect(received.length).toBe(sent - abandoned);
  const arrived = new Set(arrivals.map(({ nonce }) => nonce));
  expect(received.filter(({ nonce }) => !arrived.has(nonce))).toEqual([]);
  const recorded = new Set(records.map(({ path }) => nonceIn(path)));
  expect(received.filter(({ nonce }) => !recorded.has(nonce))).toEqual([]);
  const resumed = sessions.filter(({ at, from, isResumed }) => at === from && isResumed);
  const foreign = sessions.filter(({ at, from }) => at !== from);
  const some = [abandoned, h2, resumed.length, foreign.length, scene.upgraded.size, scene.callbackCalls];
  for (const number of some) expect(number).toBeGreaterThan(0);
  // Connections to the origin are pooled.
  expect(new Set(arrivals.map(({ connection }) => connection)).size).toBeLessThan(arrivals.length / 2);
}

class TrafficRun {
  readonly received: Received[] = [];
  readonly sessions: OfferedSession[] = [];
  /** The last TLS session that a client of a box got, by host. */
  readonly #tickets = { A: new Map<string, Buffer>(), B: new Map<string, Buffer>() };
  readonly #scene: TwoBoxes;
  #left: number;
  #sent = 0;
  #abandoned = 0;
  #h2 = 0;

  constructor(scene: TwoBoxes, count: number) {
    this.#scene = scene;
    this.#left = count;
  }

  get seen() {
    return {
      received: this.received,
      sessions: this.sessions,
      sent: this.#sent,
      abandoned: this.#abandoned,
      h2: this.#h2,
    };
  }

  /** Connections of one client, one after the other. */
  async client(box: BoxName, random: Random): Promise<void> {
    while (this.#left > 0) {
      const host = random(3) === 0 ? (CALLBACK_HOSTS[random(CALLBACK_HOSTS.length)] ?? '') : RULE_HOST;
      const nonces = Array.from({ length: Math.min(1 + random(MAX_REQUESTS), this.#left) }, () =>
        this.#next(box),
      );
      this.#left -= nonces.length;
      const renewed =
        Math.floor(this.#sent / RENEW_EVERY) !== Math.floor((this.#sent - nonces.length) / RENEW_EVERY);
      if (renewed) await this.#scene.renew(box);
      if (random(4) === 0) await this.#overHttp2(box, host, nonces);
      else await this.#overHttp1(box, host, { nonces, random });
    }
  }

  #next(box: BoxName): string {
    this.#sent += 1;
    return `${box}-${this.#sent}`;
  }

  async #overHttp2(box: BoxName, host: string, nonces: readonly string[]): Promise<void> {
    const { boxes, originPort } = this.#scene;
    const { port: proxyPort, caPem: ca } = boxes[box];
    const session = await openH2Tunnel({ proxyPort, authority: `${host}:${originPort}`, ca });
    session.on('error', () => undefined);
    const [last, ...others] = nonces.toReversed();
    const replies = others.map((nonce) => replyTo(session, nonce));
    for (const [i, got] of (await Promise.all(replies)).entries())
      this.received.push({ nonce: others[i] ?? '', got });
    this.#h2 += others.length;
    // The last stream is given up, with its connection.
    if (last !== undefined) session.request({ ':path': `/h2/${last}` }).on('error', () => undefined);
    this.#abandoned += 1;
    await closed(session);
  }

  async #overHttp1(
    box: BoxName,
    host: string,
    { nonces, random }: { readonly nonces: readonly string[]; readonly random: Random },
  ): Promise<void> {
    await using client = await this.#connect(box, host, random);
    const leaves = random(6) === 0;
    for (const [i, nonce] of nonces.entries()) {
      const isLast = i === nonces.length - 1;
      if (isLast && leaves) await this.#leave(client, host, { nonce, random });
      else if (isLast && random(4) === 0) await this.#upgrade(client, host, nonce);
      else await this.#exchange(client, host, { nonce, isPost: random(4) === 0 });
    }
  }

  /** Offers a TLS session: its own, that of the other box, or none. */
  async #connect(box: BoxName, host: string, random: Random): Promise<WireClient> {
    const { boxes, originPort } = this.#scene;
    const client = await WireClient.connect(boxes[box].port);
    const { status } = await client.openTunnel(`${host}:${originPort}`);
    if (status !== 200) throw new Error(`the response to CONNECT was ${status}`);
    const from: BoxName = random(2) === 0 ? 'A' : 'B';
    const session = this.#tickets[from].get(host);
    const secure = await client.startTls({
      ca: boxes[box].caPem,
      name: host,
      ...(session && { session }),
    });
    if (session) this.sessions.push({ at: box, from, isResumed: secure.isSessionReused() });
    secure.on('session', (ticket: Buffer) => this.#tickets[box].set(host, ticket));
    return client;
  }

  async #exchange(
    client: WireClient,
    host: string,
    { nonce, isPost }: { readonly nonce: string; readonly isPost: boolean },
  ): Promise<void> {
    const fields = `Host: ${host}:${this.#scene.originPort}\r\n`;
    await client.send(
      isPost
        ? `POST /n/${nonce} HTTP/1.1\r\n${fields}Content-Length: 4\r\n\r\nbody`
        : `GET /n/${nonce} HTTP/1.1\r\n${fields}\r\n`,
    );
    const { text } = await client.readResponse();
    this.received.push({ nonce, got: text });
  }

  async #upgrade(client: WireClient, host: string, nonce: string): Promise<void> {
    const fields = [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ];
    await client.send(
      [`GET /u/${nonce} HTTP/1.1`, `Host: ${host}:${this.#scene.originPort}`, ...fields, '', ''].join('\r\n'),
    );
    const { status } = await client.readHead();
    if (status !== 101) throw new Error(`the response to the upgrade was ${status}`);
    await client.send(`${nonce}\n`);
    const got = (await client.readThrough('\n'))?.trim() ?? 'nothing';
    this.received.push({ nonce, got });
  }

  /** In the middle of the head, in the middle of the body, or before the response. */
  async #leave(
    client: WireClient,
    host: string,
    { nonce, random }: { readonly nonce: string; readonly random: Random },
  ): Promise<void> {
    const head = `POST /a/${nonce} HTTP/1.1\r\nHost: ${host}:${this.#scene.originPort}\r\nContent-Length: 9\r\n\r\n`;
    const all = `${head}123456789`;
    this.#abandoned += 1;
    await client.send(all.slice(0, [12, head.length + 3, all.length][random(3)]));
    client.reset();
  }
}

async function replyTo(session: ClientHttp2Session, nonce: string): Promise<string> {
  const stream = session.request({ ':path': `/h2/${nonce}` });
  let text = '';
  stream.setEncoding('utf8').on('data', (part: string) => (text += part));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  stream.on('error', reject).on('end', () => resolve(text));
  return promise;
}

async function closed(session: ClientHttp2Session): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  session.on('close', () => resolve());
  session.destroy(undefined, constants.NGHTTP2_CANCEL);
  await promise;
}
