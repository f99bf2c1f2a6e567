// The system's own resolver asks a server that fails, is silent, or changes its answer from query to query between the
// host and an address that nobody may reach. What is known already stays served.
import { ask } from './asking.ts';
import { type ChaosScene, FLIPPED } from './chaos-scene.ts';
import type { Fault } from './fault.ts';
import { type Responding, createNameServer } from './name-server.ts';

const LOOPBACK: Responding = () => '127.0.0.1';
/** The metadata service of clouds: no rule opens it. In the namespace there is no way to it either. */
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
        strike() {
          server.respondWith(failing(response));
          return ask(scene.sidecar, recovered);
        },
        heal: () => server.respondWith(LOOPBACK),
        close: async () => server[Symbol.asyncDispose](),
      };
    },
  };
}

/** Each ask looks up once: a second lookup between the judgement and the connection would get the other answer. */
async function arrangeFlip(scene: ChaosScene): ReturnType<Fault['arrange']> {
  const server = await createNameServer(LOOPBACK);
  await scene.start();
  return {
    authority: scene.at(),
    recovered: scene.at('fresh.dns.test'),
    async strike() {
      let queries = 0;
      const flip: Responding = () => (queries++ % 2 === 0 ? METADATA : '127.0.0.1');
      server.respondWith((name) => (name.endsWith('.dns.test') ? flip(name) : '127.0.0.1'));
      const codes: string[] = [];
      for (const host of FLIPPED) codes.push(await ask(scene.sidecar, scene.at(host)));
      return codes.join(', ');
    },
    heal: () => server.respondWith(LOOPBACK),
    close: async () => server[Symbol.asyncDispose](),
  };
}
