// Plays a row of stage `origin`: one request in an intercepted tunnel, a response as the row's script specifies, and
// then one plain request that shows the effect on the connections. Returns everything that was observed; `violations`
// compares it.
import { SECRET, publicAuthority, tracesOf } from '../../invariants/credential-scene.ts';
import { type Exchange, type RecordingOrigin, createOrigin } from '../../support/recording-origin.ts';
import type { LogRecord } from '../../support/spawned-process.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import {
  type ClientEnd,
  type OriginRow,
  type OriginScript,
  type OriginStep,
  expand,
} from './origin-script.ts';
import { readResponses } from './origin-reading.ts';

export type OriginScene = AsyncDisposable & {
  readonly proxy: TestSidecar;
  play(row: OriginRow): Promise<OriginObservation>;
};

export type OriginObservation = {
  readonly client: string;
  readonly end: ClientEnd;
  /** The response to the plain request after the attack. */
  readonly next: string;
  readonly host: 'reused' | 'fresh';
  /** The heads and the body that the host received, including the plain requests. */
  readonly heads: readonly string[];
  readonly body: string;
  readonly elsewhere: number;
  readonly records: readonly LogRecord[];
  readonly traces: readonly string[];
};

const rule = {
  name: 'api',
  match_hosts: ['api.test', 'bad.test', 'lost.test'],
  headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
};
const timeouts = { drain_ms: 500 };
const shortTimeouts = { ...timeouts, response_idle_ms: 300, continue_ms: 100, connect_ms: 1_000 };

export async function createOriginScene(isImpatient = false): Promise<OriginScene> {
  let script: Turns | undefined;
  const respond = (exchange: Exchange): Promise<void> | undefined => script?.respond(exchange);
  const tls = { authority: publicAuthority, names: ['api.test'] };
  const origin = await createOrigin({ tls, respond });
  const elsewhere = await createOrigin();
  const proxy = await createTestSidecar({
    secrets: { TOKEN: SECRET },
    origins: publicAuthority,
    names: { 'lost.test': new Error(`getaddrinfo of 10.1.2.3 failed for ${SECRET}`) },
    config: { timeouts: isImpatient ? shortTimeouts : timeouts },
  });
  return {
    proxy,
    async play(row) {
      // A new revision: no connection of an earlier row is reused.
      proxy.apply({ rules: [rule] });
      script = new Turns(row.script, elsewhere.port);
      return playRow(row.script, script, { proxy, origin, elsewhere });
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await origin.close();
      await elsewhere.close();
    },
  };
}

/** The host's side: the first request gets the response of the script, every other one a response with its target. */
class Turns {
  readonly responded = Promise.withResolvers<void>();
  attacked: Exchange | undefined;
  readonly #script: OriginScript;
  readonly #elsewhere: number;
  #turn = 0;
  #go = Promise.withResolvers<void>();

  constructor(script: OriginScript, elsewhere: number) {
    this.#script = script;
    this.#elsewhere = elsewhere;
  }

  /** Resolves at the next `go` of the script. */
  async gone(): Promise<void> {
    await this.#go.promise;
    this.#go = Promise.withResolvers();
  }

  readonly respond = async (exchange: Exchange): Promise<void> => {
    const isAttacked = this.#turn === (this.#script.before ?? 0);
    this.#turn += 1;
    if (!isAttacked) return exchange.send(plainResponse(exchange.request.target));
    this.attacked = exchange;
    for (const step of this.#script.response) await this.#take(step, exchange);
  };

  async #take(step: OriginStep, exchange: Exchange): Promise<void> {
    if (step === 'body') await exchange.readBody();
    else if (step === 'go') this.#go.resolve();
    else if (step === 'responded') await this.responded.promise;
    else if (step === 'closed') await exchange.reader.finished;
    else if (step === 'end') exchange.end();
    else if (step === 'reset') exchange.reset();
    else if ('send' in step) await sendOrBreak(exchange, this.#fill(expand(step.send)));
    else if ('drip' in step) for (const byte of expand(step.drip)) await sendOrBreak(exchange, byte);
    else if ('through' in step) await exchange.reader.readThrough(step.through);
    else while (await sendOrBreak(exchange, step.flood));
  }

  #fill(text: string): string {
    return text.replaceAll('{ELSEWHERE}', String(this.#elsewhere));
  }
}

/** False once the connection is closed: the proxy may close it at any byte, and the row specifies whether it must. */
function sendOrBreak(exchange: Exchange, text: string): Promise<boolean> {
  return exchange.send(Buffer.from(text, 'latin1')).then(
    () => true,
    () => false,
  );
}

export function plainResponse(target: string): string {
  return `HTTP/1.1 200 OK\r\nContent-Length: ${target.length}\r\nX-Plain: yes\r\n\r\n${target}`;
}

type Peers = {
  readonly proxy: TestSidecar;
  readonly origin: RecordingOrigin;
  readonly elsewhere: RecordingOrigin;
};

const NEXT = '/next';

async function playRow(script: OriginScript, turns: Turns, peers: Peers): Promise<OriginObservation> {
  const { proxy, origin, elsewhere } = peers;
  const { host = 'api.test', before = 0, reads = 1 } = script;
  const [name = ''] = host.split(':');
  const authority = host.includes(':') ? host : `${host}:${origin.port}`;
  const fill = (text: string): string => text.replaceAll('{HOST}', authority);
  const open = (): Promise<WireClient> =>
    WireClient.connectThrough(proxy.port, authority, { ca: proxy.caPem, name });
  const seen = { records: proxy.records().length, heads: origin.requests.length };
  const others = elsewhere.connections;
  await using client = await open();
  for (let turn = 0; turn < before; turn += 1) {
    await client.send(fill(get(`/before/${turn}`)));
    await client.readResponse();
  }
  const already = client.transcript.length;
  const [first = '', ...later] = (script.request ?? [get('/')]).map(fill);
  await client.send(first);
  const sending = sendLater(client, later, turns);
  const { end, bytes } = await readResponses(client, {
    reads,
    methods: [first, ...later].join('').match(/^[A-Z]+(?= \S+ HTTP\/1\.[01]\r$)/gm) ?? [],
    leavesAfter: script.leavesAfter,
  });
  turns.responded.resolve();
  await sending;
  // A relay of two connections ends when both have ended.
  if (end === 'ended') client.end();
  if (script.response.includes('closed')) await turns.attacked?.reader.finished;
  await proxy.record(seen.records + before + reads - 1);
  await using other = end === 'open' ? undefined : await open();
  const asked = other ?? client;
  const from = other ? 0 : already + bytes;
  await asked.send(fill(get(NEXT)));
  await asked.readResponse();
  await proxy.record(seen.records + before + reads);
  const heads = origin.requests.slice(seen.heads);
  return {
    client: client.transcript
      .slice(already, already + bytes)
      .replaceAll(`127.0.0.1:${elsewhere.port}`, '127.0.0.1:{ELSEWHERE}'),
    end,
    next: asked.transcript.slice(from),
    host: heads.at(-1)?.connection === heads[before]?.connection ? 'reused' : 'fresh',
    heads: heads.map(({ head }) => head),
    body: heads[before]?.body?.content.toString('latin1') ?? '',
    elsewhere: elsewhere.connections - others,
    records: proxy.records().slice(seen.records),
    traces: [
      ...tracesOf(SECRET, [client.transcript, asked.transcript]),
      ...tracesOf(
        SECRET,
        proxy
          .records()
          .slice(seen.records)
          .map((record) => JSON.stringify(record)),
      ),
    ],
  };
}

async function sendLater(client: WireClient, segments: readonly string[], turns: Turns): Promise<void> {
  for (const segment of segments) {
    await Promise.race([turns.gone(), client.finished]);
    // A client whose connection was closed meanwhile sends no further request.
    await client.send(segment).catch(() => undefined);
  }
}

function get(target: string): string {
  return `GET ${target} HTTP/1.1\r\nHost: {HOST}\r\n\r\n`;
}
