// hudsucker (Rust) for comparison: intercepts CONNECT, keeps minted leaves, verifies upstream, HTTP/2 for clients, HTTP/1.1 to
// the origin. Its program is bench/peers/hudsucker, built with `cargo build --release`; one thread.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Peer, peersCache, startPeer } from '../support/peer.ts';
import { throughProxy } from '../support/subject.ts';

const binary: string = join(peersCache, 'cargo', 'release', 'hudsucker-bench');

export const hudsucker: Peer = {
  name: 'hudsucker',
  install: 'install Rust, then npm run bench:peers -- hudsucker',
  find: () => (existsSync(binary) ? { path: binary, version: '0.25.0' } : undefined),
  async start({ path }, children, scene) {
    const { certFile, keyFile, pem } = scene.peerCa;
    const { port, pid } = await startPeer('hudsucker', children, scene, {
      command: (_, listenPort) => [path, `127.0.0.1:${listenPort}`, certFile, keyFile, scene.caFile],
      env: { BENCH_CREDENTIAL: scene.credential },
    });
    return {
      name: 'hudsucker',
      about: 'Rust library for intercepting proxies; HTTP/1.1 to the origin; writes no log',
      pid,
      protocols: ['h1', 'h2'],
      upstream: 'h1',
      isForward: true,
      target: throughProxy({ port, caPem: pem }),
    };
  },
};
