// A callback endpoint that fails in every way and each time knows the key that it was called with. Nothing may reach the
// host meanwhile, and failures must not be cached.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { headerValues } from '../support/message-reader.ts';
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { type Exchange, jsonResponse, response } from '../support/recording-origin.ts';
import { createTestAuthority, type TestAuthority } from '../support/test-authority.ts';
import { fetchCodesTogether } from './proxy-request.ts';
import { goodResponse, type ChaosScene, type SceneSettings } from './chaos-scene.ts';
import type { Fault } from './fault.ts';

type Response = (exchange: Exchange) => Promise<void>;

const REFUSED = '502 callback_failed';
/** The pause is longer than the time limit for a response of any length. */
const DRIP_MS = 50;
const SHORT: SceneSettings = { env: { SALLYPORT_CALLBACK_TIMEOUT_MS: '1000' } };
const OVERSIZE_BYTES = 1_000_000;

const keyOf = ({ request }: Exchange): string => headerValues(request, 'x-callback-key')[0] ?? '';

const fail: Response = (exchange) => exchange.send(jsonResponse({ error: keyOf(exchange) }, 500));
const rest: Response = ({ socket }) => once(socket, 'close').then(() => undefined);
const drip: Response = async ({ socket, send }) => {
  await send('HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n{');
  while (!socket.destroyed) {
    await delay(DRIP_MS);
    await send(' ').catch(() => undefined);
  }
};
const malform: Response = (exchange) =>
  exchange.send(response(200, [], `{"headers": {"Authorization": ${keyOf(exchange)}`));
const flood: Response = (exchange) => {
  const filler = { headers: { Authorization: keyOf(exchange) }, filler: 'x'.repeat(OVERSIZE_BYTES) };
  // The proxy closes the connection before the end.
  return exchange.send(jsonResponse(filler)).catch(() => undefined);
};

export const callbackFaults: readonly Fault[] = [
  responding('callback: 500', fail),
  responding('callback: timeout', rest),
  responding('callback: slow', drip),
  responding('callback: malformed', malform),
  responding('callback: oversize', flood),
  sealed(),
];

function responding(name: string, response: Response): Fault {
  const [, kind = ''] = name.split(': ');
  return {
    name,
    expects: REFUSED,
    settings: SHORT,
    async arrange(scene) {
      await scene.start();
      // Nothing is cached for it: it was never requested while the endpoint worked.
      const authority = scene.at(`${kind}.called.test`);
      return {
        authority: scene.at(),
        inject() {
          scene.callback.respondWith(response);
          return askUnseen(scene, authority);
        },
        remove: () => scene.callback.respondWith(goodResponse(scene.secrets)),
        recovered: authority,
      };
    },
  };
}

/** Its endpoint presents the certificate of a foreign CA for the duration of the fault. */
function sealed(): Fault {
  const foreignCa = createTestAuthority('Foreign CA');
  return {
    name: 'callback: TLS failure',
    expects: REFUSED,
    async arrange(scene) {
      let shown: TestAuthority = scene.authority;
      const authority: TestAuthority = {
        certificatePem: '',
        contextFor: (name) => shown.contextFor(name),
      };
      const endpoint: CallbackEndpoint = await createCallbackEndpoint(goodResponse(scene.secrets), {
        authority,
        names: ['endpoint.test'],
      });
      await scene.start({ sealedCallback: endpoint.url });
      return {
        authority: scene.at(),
        inject() {
          shown = foreignCa;
          return askUnseen(scene, scene.at('host.sealed.test'));
        },
        remove() {
          shown = scene.authority;
        },
        recovered: scene.at('host.sealed.test'),
        close: async () => endpoint[Symbol.asyncDispose](),
      };
    },
  };
}

/** The code of the response, and whether a request reached the host. */
async function askUnseen(scene: ChaosScene, authority: string): Promise<string> {
  const before = scene.host.origin.requests.length;
  const code = await fetchCodesTogether(scene.sidecar, authority);
  return scene.host.origin.requests.length === before ? code : `${code}, and the host got a request`;
}
