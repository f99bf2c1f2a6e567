// A client that is not part of the attack: it belongs to another sandbox on the same port, repeats its request on one
// connection, and sends one on a new connection. The attack must not affect it.
import { headerValues } from '../../support/message-reader.ts';
import type { OriginRequest, RecordingOrigin } from '../../support/recording-origin.ts';
import { WireClient } from '../../support/wire-client.ts';

const PAUSE_MS = 10;
const TOKEN = 'token-of-the-bystander';
const VALUE = 'value-of-the-bystander';
const BASIC: string = Buffer.from(`x:${TOKEN}`).toString('base64');

/** The sandbox of the bystander. */
export const bystanderSandbox: object = {
  id: 'bystander',
  token: TOKEN,
  proxy_config: {
    rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Mine', type: 'opaque', value: VALUE }] }],
  },
};

export type BystanderReport = {
  readonly errors: readonly string[];
  /** The time of the slowest response, and of the first response on the new connection. */
  readonly slowestMs: number;
  readonly newcomerMs: number;
};
export type Bystander = { stop(): Promise<BystanderReport> };
export type Target = {
  readonly port: number;
  readonly caPem: string;
  readonly authority: string;
  readonly origin: RecordingOrigin;
};

/** Resolves after its first response. */
export async function createBystander(target: Target): Promise<Bystander> {
  const errors: string[] = [];
  let slowestMs = 0;
  const client = await open(target);
  await ask(client);
  const stopping = new AbortController();

  async function ask(one: WireClient): Promise<number> {
    const startedMs = performance.now();
    await one.send(`GET /bystander HTTP/1.1\r\nHost: ${target.authority}\r\nX-Bystander: 1\r\n\r\n`);
    const { head, text } = await one.readResponse();
    if (head.status !== 200 || text !== 'fine') errors.push(`${head.status} ${text}`);
    if (!target.origin.requests.every(isInjected)) errors.push('a request was sent without its credential');
    return performance.now() - startedMs;
  }

  async function repeatRequests(): Promise<void> {
    while (!stopping.signal.aborted) {
      slowestMs = Math.max(slowestMs, await ask(client));
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async function requestOnNewConnection(): Promise<number> {
    const startedMs = performance.now();
    await using newcomer = await open(target);
    await ask(newcomer);
    return performance.now() - startedMs;
  }

  const note = (error: unknown): number => {
    errors.push(String(error));
    return Number.POSITIVE_INFINITY;
  };
  const running = repeatRequests().catch(note);
  const newcomer = requestOnNewConnection().catch(note);
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

async function open({ port, caPem, authority }: Target): Promise<WireClient> {
  const client = await WireClient.connect(port);
  const head = await client.openTunnel(authority, [`Proxy-Authorization: Basic ${BASIC}`]);
  if (head.status !== 200) throw new Error(`CONNECT got ${head.text}`);
  await client.startTls({ ca: caPem, name: 'api.test' });
  return client;
}

function isInjected(request: OriginRequest): boolean {
  return !isBystanders(request) || headerValues(request, 'x-mine').join() === VALUE;
}

export function isBystanders(request: OriginRequest): boolean {
  return headerValues(request, 'x-bystander').length > 0;
}
