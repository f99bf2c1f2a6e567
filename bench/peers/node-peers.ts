// The peers that are Node programs: mockttp, http-mitm-proxy, and the obvious design on http-proxy-3. Each has a program in
// bench/peers/programs, which gets JSON as its only argument and writes the certificate of its CA to a file when it listens.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Children } from '../support/children.ts';
import { type Peer, findPackage, peersCache, peersFolder, startPeer } from '../support/peer.ts';
import type { Scene } from '../support/scene.ts';
import { type Protocol, type Subject, throughProxy } from '../support/subject.ts';

const CA_DEADLINE_MS = 15_000;

type NodePeer = {
  readonly name: string;
  readonly about: string;
  readonly protocols: readonly Protocol[];
  /** Lines that its client has to send. */
  readonly extra?: readonly string[];
};

export const mockttp: Peer = nodePeer({
  name: 'mockttp',
  about: 'Node library for intercepting; RSA leaves; writes no log',
  protocols: ['h1', 'h2'],
});

export const httpMitmProxy: Peer = nodePeer({
  name: 'http-mitm-proxy',
  about: 'Node library for intercepting; HTTP/1.1 only; RSA leaves; writes no log',
  protocols: ['h1'],
  // Without it the proxy closes after each response.
  extra: ['Proxy-Connection: keep-alive'],
});

export const httpProxy3: Peer = nodePeer({
  name: 'http-proxy-3',
  about: 'the obvious design: node:http, minted leaves, http-proxy-3; HTTP/1.1 only; writes no log',
  protocols: ['h1'],
});

function nodePeer(peer: NodePeer): Peer {
  const { name } = peer;
  return {
    name,
    install: `npm run bench:peers -- ${name}`,
    find: () => findPackage(name),
    start: (_, children, scene) => startNodePeer(peer, children, scene),
  };
}

async function startNodePeer(peer: NodePeer, children: Children, scene: Scene): Promise<Subject> {
  const { name, about, protocols, extra } = peer;
  const program = join(peersFolder, 'programs', `${name}.mjs`);
  const caOutput = join(scene.directory, `${name}-ca.pem`);
  const { port, pid } = await startPeer(name, children, scene, {
    command: (directory, listenPort) => {
      const { caFile, credential, peerCa } = scene;
      const ca = { certFile: peerCa.certFile, keyFile: peerCa.keyFile };
      const options = { port: listenPort, directory, caFile, credential, ca, caOutput, modules: peersCache };
      return [process.execPath, program, JSON.stringify(options)];
    },
  });
  const endMs = performance.now() + CA_DEADLINE_MS;
  while (!existsSync(caOutput)) {
    if (performance.now() > endMs) throw new Error(`${name} writes no CA certificate`);
    await delay(10);
  }
  const caPem = readFileSync(caOutput, 'utf8');
  const target = throughProxy({ port, caPem, ...(extra === undefined ? {} : { extra }) });
  return { name, about, pid, protocols, isForward: true, target };
}
