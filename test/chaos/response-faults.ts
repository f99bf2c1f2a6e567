// A host that reads a request and then resets, rests, drips, storms or speaks noise, at every phase of its answer. What it
// sends in its head is the credential that it was given.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { headerValues } from '../support/message-reader.ts';
import type { Exchange } from '../support/recording-origin.ts';
import { askTogether, openTunnel, readCode } from './asking.ts';
import type { ChaosScene, SceneSettings } from './chaos-scene.ts';
import type { Fault } from './fault.ts';
import type { Manner } from './struck-host.ts';

const HALF = 'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf';
const UPLOAD_BYTES = 8_000_000;
const DRIP_MS = 1_000;
/** A host that rests is given up soon. */
const SHORT: SceneSettings = { env: { SALLYPORT_TIMEOUTS_RESPONSE_IDLE_MS: '1500' } };

const credentialOf = ({ request }: Exchange): string => headerValues(request, 'authorization')[0] ?? '';
const gone = async ({ socket }: Exchange): Promise<void> => void (await once(socket, 'close'));

const resetBefore: Manner = ({ reset }) => reset();
const resetInHead: Manner = async (exchange) => {
  await exchange.send(`HTTP/1.1 200 OK\r\nX-Echo: ${credentialOf(exchange)}\r\nX-Cut`);
  exchange.reset();
};
const resetInBody: Manner = async ({ send, reset }) => {
  await send(HALF);
  reset();
};
const resetAfterEnd: Manner = async ({ request, send, end, reset }) => {
  const [nonce = ''] = headerValues(request, 'x-nonce');
  await send(`HTTP/1.1 200 OK\r\nContent-Length: ${nonce.length}\r\n\r\n${nonce}`);
  end();
  // The answer must have gone out of this machine's hands: RST throws away what has not.
  await delay(50);
  reset();
};
const halfClose: Manner = async (exchange) => {
  exchange.end();
  await gone(exchange);
};
const rest: Manner = gone;
const restUnread: Manner = (exchange) => {
  exchange.socket.pause();
  return gone(exchange);
};
const restInHead: Manner = async (exchange) => {
  await exchange.send(`HTTP/1.1 200 OK\r\nX-Echo: ${credentialOf(exchange)}\r\nX-Cut`);
  await gone(exchange);
};
const restInBody: Manner = async (exchange) => {
  await exchange.send(HALF);
  await gone(exchange);
};
const storm: Manner = async (exchange) => {
  const hint = `HTTP/1.1 103 Early Hints\r\nX-Echo: ${credentialOf(exchange)}\r\n\r\n`;
  while (!exchange.socket.destroyed) await exchange.send(hint).catch(() => undefined);
};
const noise: Manner = async (exchange) => {
  await exchange.send(`HTTP/1.1 2${credentialOf(exchange)}\0\r\n ${credentialOf(exchange)}\r\n\r\n`);
  exchange.end();
};

export const answerFaults: readonly Fault[] = [
  responding('upstream: RST before headers', '502 upstream_closed', resetBefore),
  responding('upstream: RST mid-headers', '502 upstream_closed', resetInHead),
  responding('upstream: RST mid-body', '200 cut', resetInBody),
  responding('upstream: RST after FIN', '200', resetAfterEnd),
  responding('upstream: half-close', '502 upstream_closed', halfClose),
  responding('upstream: 1xx storm', '502 upstream_malformed', storm),
  responding('upstream: h1 garbage', '502 upstream_malformed', noise),
  { ...responding('upstream: stall before headers', '504 upstream_timeout', rest, SHORT), isAdded: true },
  { ...responding('upstream: stall mid-headers', '504 upstream_timeout', restInHead, SHORT), isAdded: true },
  { ...responding('upstream: stall mid-body', '200 cut', restInBody, SHORT), isAdded: true },
  {
    name: 'upstream: 1 B/s',
    expects: '200, byte by byte',
    settings: { env: { SALLYPORT_TIMEOUTS_RESPONSE_IDLE_MS: '3000' } },
    arrange: arrangeDrip,
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
    arrange: (scene) => arrangeUpload(scene, restUnread),
  },
];

function responding(name: string, expects: string, manner: Manner, settings: SceneSettings = {}): Fault {
  return {
    name,
    expects,
    settings,
    async arrange(scene) {
      await scene.start();
      return {
        authority: scene.at(),
        strike() {
          scene.host.behave(manner);
          return askTogether(scene.sidecar, scene.at());
        },
        heal: () => scene.host.recover(),
      };
    },
  };
}

/** A byte a second for as long as the fault lasts; the client has each when it comes, and the whole in the end. */
async function arrangeDrip(scene: ChaosScene): ReturnType<Fault['arrange']> {
  await scene.start();
  const healed = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<string>();
  return {
    authority: scene.at(),
    async strike() {
      scene.host.behave((exchange) => drip(exchange, healed.promise));
      const client = await openTunnel(scene.sidecar, scene.at());
      await client.send(`GET / HTTP/1.1\r\nHost: ${scene.at()}\r\nConnection: close\r\n\r\n`);
      const { status } = await client.readHead();
      const pieces = [];
      for (const _ of DRIPPED) pieces.push(String(await client.readSome()));
      client.readToEnd().then(finished.resolve, finished.reject);
      finished.promise.finally(() => client[Symbol.asyncDispose]()).catch(() => undefined);
      return `${status}, ${pieces.join('|') === [...DRIPPED].join('|') ? 'byte by byte' : 'in other pieces'}`;
    },
    async heal() {
      scene.host.recover();
      healed.resolve();
      if ((await finished.promise) !== REST) throw new Error('what was dripped did not end as a whole');
    },
  };
}

const DRIPPED = 'abc';
const REST = 'def';

async function drip({ send, end }: Exchange, healed: Promise<void>): Promise<void> {
  const length = DRIPPED.length + REST.length;
  await send(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`);
  for (const byte of DRIPPED) {
    await delay(DRIP_MS);
    await send(byte);
  }
  await healed;
  await send(REST);
  end();
}

async function arrangeUpload(scene: ChaosScene, manner: Manner): ReturnType<Fault['arrange']> {
  await scene.start();
  return {
    authority: scene.at(),
    async strike() {
      scene.host.behave(manner);
      await using client = await openTunnel(scene.sidecar, scene.at());
      const head = `POST / HTTP/1.1\r\nHost: ${scene.at()}\r\nContent-Length: ${UPLOAD_BYTES}\r\n\r\n`;
      // It ends when the proxy has enough of it: what counts is the answer.
      client.send(Buffer.concat([Buffer.from(head), Buffer.alloc(UPLOAD_BYTES)])).catch(() => undefined);
      const code = await readCode(client).catch(() => 'closed');
      scene.keep(client.transcript);
      return code;
    },
    heal: () => scene.host.recover(),
  };
}

const respondEarly: Manner = async (exchange) => {
  await exchange.send('HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
  exchange.end();
  await gone(exchange);
};
