// The system's resolver queries a server that fails, is silent, or alternates between the address of the host and a
// forbidden address. Open connections keep being served.
import { fetchCode } from './proxy-request.ts';
import { type ChaosScene, FLIPPED } from './chaos-scene.ts';
import type { Fault } from './fault.ts';
import { type Responding, createNameServer } from './name-server.ts';

const LOOPBACK: Responding = () => '127.0.0.1';
/** The metadata service of clouds: no rule opens it. In the namespace there is no route to it either. */
const METADATA = '169.254.169.254';

const failing = (response: string): Responding => {
  return (name) => (name.endsWith('.dns.test') ? response : '127.0.0.1');
};

export const nameFaults: readonly Fault[] = [
  responding('DNS: SERVFAIL', '502 dns_failed', 'servfail'),
  responding('DNS: timeout', '504 upstream_timeout', 'silent'),
  {
    name: 'DNS: flip per query',
    expects: FLIPPED.map((_, i) => (i % 2 === 0 ? '403 address_denied' : '200')).join(', '),
    needs: ['namespaces'],
    settings: { hasRealLookup: true },
    arrange: arrangeFlip,
  },
];

function responding(name: string, expects: string, response: string): Fault {
  return {
    name,
    expects,
    needs: ['namespaces'],
    settings: { hasRealLookup: true, env: { SALLYPORT_TIMEOUTS_DNS_MS: '500' } },
    async arrange(scene) {
      const server = await createNameServer(LOOPBACK);
      await scene.start();
      const recovered = scene.at('fresh.dns.test');
      return {
        authority: scene.at(),
        recovered,
        inject() {
          server.respondWith(failing(response));
          return fetchCode(scene.sidecar, recovered);
        },
        remove: () => server.respondWith(LOOPBACK),
        close: async () => server[Symbol.asyncDispose](),
      };
    },
  };
}

/** Each request causes one lookup: a second lookup between the check and the dial would return the other address. */
async function arrangeFlip(scene: ChaosScene): ReturnType<Fault['arrange']> {
  const server = await createNameServer(LOOPBACK);
  await scene.start();
  return {
    authority: scene.at(),
    recovered: scene.at('fresh.dns.test'),
    async inject() {
      let queries = 0;
      const flip: Responding = () => (queries++ % 2 === 0 ? METADATA : '127.0.0.1');
      server.respondWith((name) => (name.endsWith('.dns.test') ? flip(name) : '127.0.0.1'));
      const codes: string[] = [];
      for (const host of FLIPPED) codes.push(await fetchCode(scene.sidecar, scene.at(host)));
      return codes.join(', ');
    },
    remove: () => server.respondWith(LOOPBACK),
    close: async () => server[Symbol.asyncDispose](),
  };
}
