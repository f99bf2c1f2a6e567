// Somebody who has nothing to do with the attack: a client of another sandbox on the same port, who asks again and again,
// and once on a new connection. Whoever is attacked must not be felt here.
import { headerValues } from '../../support/message-reader.ts';
import type { OriginRequest, RecordingOrigin } from '../../support/recording-origin.ts';
import { WireClient } from '../../support/wire-client.ts';

const PAUSE_MS = 10;
const TOKEN = 'token-of-the-bystander';
const VALUE = 'value-of-the-bystander';
const BASIC: string = Buffer.from(`x:${TOKEN}`).toString('base64');

/** The sandbox that it speaks for. */
export const bystandersBox: object = {
  id: 'bystander',
  token: TOKEN,
  proxy_config: {
    rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Mine', type: 'opaque', value: VALUE }] }],
  },
};

export type Standing = {
  readonly errors: readonly string[];
  /** Of the slowest answer, and of the new connection's first. */
  readonly slowestMs: number;
  readonly newcomerMs: number;
};
export type Bystander = { stop(): Promise<Standing> };
export type Way = {
  readonly port: number;
  readonly caPem: string;
  readonly authority: string;
  readonly origin: RecordingOrigin;
};

/** Resolves when it has had its first answer. */
export async function createBystander(way: Way): Promise<Bystander> {
  const errors: string[] = [];
  let slowestMs = 0;
  const client = await open(way);
  await ask(client);
  const stopping = new AbortController();

  async function ask(one: WireClient): Promise<number> {
    const startedMs = performance.now();
    await one.send(`GET /bystander HTTP/1.1\r\nHost: ${way.authority}\r\nX-Bystander: 1\r\n\r\n`);
    const { head, text } = await one.readResponse();
    if (head.status !== 200 || text !== 'fine') errors.push(`${head.status} ${text}`);
    if (!way.origin.requests.every(isInjected)) errors.push('a request left without its credential');
    return performance.now() - startedMs;
  }

  async function askAgain(): Promise<void> {
    while (!stopping.signal.aborted) {
      slowestMs = Math.max(slowestMs, await ask(client));
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async function askAnew(): Promise<number> {
    const startedMs = performance.now();
    await using newcomer = await open(way);
    await ask(newcomer);
    return performance.now() - startedMs;
  }

  const note = (error: unknown): number => {
    errors.push(String(error));
    return Number.POSITIVE_INFINITY;
  };
  const running = askAgain().catch(note);
  const newcomer = askAnew().catch(note);
  return {
    async stop() {
      const newcomerMs = await newcomer;
      stopping.abort();
      await running;
      await client[Symbol.asyncDispose]();
      return { errors, slowestMs, newcomerMs };
    },
  };
}

async function open({ port, caPem, authority }: Way): Promise<WireClient> {
  const client = await WireClient.connect(port);
  const head = await client.openTunnel(authority, [`Proxy-Authorization: Basic ${BASIC}`]);
  if (head.status !== 200) throw new Error(`CONNECT was answered ${head.text}`);
  await client.startTls({ ca: caPem, name: 'api.test' });
  return client;
}

function isInjected(request: OriginRequest): boolean {
  return !isBystanders(request) || headerValues(request, 'x-mine').join() === VALUE;
}

export function isBystanders(request: OriginRequest): boolean {
  return headerValues(request, 'x-bystander').length > 0;
}
