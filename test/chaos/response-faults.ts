// A host that reads a request and then resets, stalls, trickles, floods or sends garbage, at every phase of its response.
// Its response head contains the credential that it received.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { headerValues } from '../support/message-reader.ts';
import type { Exchange } from '../support/recording-origin.ts';
import { fetchCodesTogether, openTunnel, readCode } from './proxy-request.ts';
import type { ChaosScene, SceneSettings } from './chaos-scene.ts';
import type { Fault } from './fault.ts';
import type { Behavior } from './failing-host.ts';

const HALF = 'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf';
const UPLOAD_BYTES = 8_000_000;
const TRICKLE_MS = 1_000;
/** A short time limit for a host that stalls. */
const SHORT: SceneSettings = { env: { SALLYPORT_TIMEOUTS_RESPONSE_IDLE_MS: '1500' } };

const credentialOf = ({ request }: Exchange): string => headerValues(request, 'authorization')[0] ?? '';
const untilClosed = async ({ socket }: Exchange): Promise<void> => void (await once(socket, 'close'));

const resetBefore: Behavior = ({ reset }) => reset();
const resetInHead: Behavior = async (exchange) => {
  await exchange.send(`HTTP/1.1 200 OK\r\nX-Echo: ${credentialOf(exchange)}\r\nX-Cut`);
  exchange.reset();
};
const resetInBody: Behavior = async ({ send, reset }) => {
  await send(HALF);
  reset();
};
const resetAfterEnd: Behavior = async ({ request, send, end, reset }) => {
  const [nonce = ''] = headerValues(request, 'x-nonce');
  await send(`HTTP/1.1 200 OK\r\nContent-Length: ${nonce.length}\r\n\r\n${nonce}`);
  end();
  // The kernel must have sent the response: RST discards unsent bytes.
  await delay(50);
  reset();
};
const halfClose: Behavior = async (exchange) => {
  exchange.end();
  await untilClosed(exchange);
};
const stall: Behavior = untilClosed;
const stallUnread: Behavior = (exchange) => {
  exchange.socket.pause();
  return untilClosed(exchange);
};
const stallInHead: Behavior = async (exchange) => {
  await exchange.send(`HTTP/1.1 200 OK\r\nX-Echo: ${credentialOf(exchange)}\r\nX-Cut`);
  await untilClosed(exchange);
};
const stallInBody: Behavior = async (exchange) => {
  await exchange.send(HALF);
  await untilClosed(exchange);
};
const flood: Behavior = async (exchange) => {
  const hint = `HTTP/1.1 103 Early Hints\r\nX-Echo: ${credentialOf(exchange)}\r\n\r\n`;
  while (!exchange.socket.destroyed) await exchange.send(hint).catch(() => undefined);
};
const sendGarbage: Behavior = async (exchange) => {
  await exchange.send(`HTTP/1.1 2${credentialOf(exchange)}\0\r\n ${credentialOf(exchange)}\r\n\r\n`);
  exchange.end();
};

export const responseFaults: readonly Fault[] = [
  responding('upstream: RST before headers', '502 upstream_closed', resetBefore),
  responding('upstream: RST mid-headers', '502 upstream_closed', resetInHead),
  responding('upstream: RST mid-body', '200 cut', resetInBody),
  responding('upstream: RST after FIN', '200', resetAfterEnd),
  responding('upstream: half-close', '502 upstream_closed', halfClose),
  responding('upstream: 1xx storm', '502 upstream_malformed', flood),
  responding('upstream: h1 garbage', '502 upstream_malformed', sendGarbage),
  { ...responding('upstream: stall before headers', '504 upstream_timeout', stall, SHORT), isAdded: true },
  { ...responding('upstream: stall mid-headers', '504 upstream_timeout', stallInHead, SHORT), isAdded: true },
  { ...responding('upstream: stall mid-body', '200 cut', stallInBody, SHORT), isAdded: true },
  {
    name: 'upstream: 1 B/s',
    expects: '200, byte by byte',
    settings: { env: { SALLYPORT_TIMEOUTS_RESPONSE_IDLE_MS: '3000' } },
    arrange: arrangeTrickle,
  },
  {
    name: 'upstream: early response',
    expects: '413',
    arrange: (scene) => arrangeUpload(scene, respondEarly),
  },
  {
    name: 'upstream: stalled upload',
    expects: '504 upstream_timeout',
    settings: SHORT,
    arrange: (scene) => arrangeUpload(scene, stallUnread),
  },
];

function responding(name: string, expects: string, behavior: Behavior, settings: SceneSettings = {}): Fault {
  return {
    name,
    expects,
    settings,
    async arrange(scene) {
      await scene.start();
      return {
        authority: scene.at(),
        inject() {
          scene.host.behave(behavior);
          return fetchCodesTogether(scene.sidecar, scene.at());
        },
        remove: () => scene.host.recover(),
      };
    },
  };
}

/** One byte a second for the duration of the fault; the client gets each byte when it is sent, and the complete body at the end. */
async function arrangeTrickle(scene: ChaosScene): ReturnType<Fault['arrange']> {
  await scene.start();
  const removed = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<string>();
  return {
    authority: scene.at(),
    async inject() {
      scene.host.behave((exchange) => trickle(exchange, removed.promise));
      const client = await openTunnel(scene.sidecar, scene.at());
      await client.send(`GET / HTTP/1.1\r\nHost: ${scene.at()}\r\nConnection: close\r\n\r\n`);
      const { status } = await client.readHead();
      const pieces = [];
      for (const _ of TRICKLED) pieces.push(String(await client.readSome()));
      client.readToEnd().then(finished.resolve, finished.reject);
      finished.promise.finally(() => client[Symbol.asyncDispose]()).catch(() => undefined);
      return `${status}, ${pieces.join('|') === [...TRICKLED].join('|') ? 'byte by byte' : 'in other pieces'}`;
    },
    async remove() {
      scene.host.recover();
      removed.resolve();
      if ((await finished.promise) !== REST) throw new Error('the trickled body did not arrive completely');
    },
  };
}

const TRICKLED = 'abc';
const REST = 'def';

async function trickle({ send, end }: Exchange, removed: Promise<void>): Promise<void> {
  const length = TRICKLED.length + REST.length;
  await send(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`);
  for (const byte of TRICKLED) {
    await delay(TRICKLE_MS);
    await send(byte);
  }
  await removed;
  await send(REST);
  end();
}

async function arrangeUpload(scene: ChaosScene, behavior: Behavior): ReturnType<Fault['arrange']> {
  await scene.start();
  return {
    authority: scene.at(),
    async inject() {
      scene.host.behave(behavior);
      await using client = await openTunnel(scene.sidecar, scene.at());
      const head = `POST / HTTP/1.1\r\nHost: ${scene.at()}\r\nContent-Length: ${UPLOAD_BYTES}\r\n\r\n`;
      // The send fails when the proxy closes the connection: only the response counts.
      client.send(Buffer.concat([Buffer.from(head), Buffer.alloc(UPLOAD_BYTES)])).catch(() => undefined);
      const code = await readCode(client).catch(() => 'closed');
      scene.collect(client.transcript);
      return code;
    },
    remove: () => scene.host.recover(),
  };
}

const respondEarly: Behavior = async (exchange) => {
  await exchange.send('HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
  exchange.end();
  await untilClosed(exchange);
};
