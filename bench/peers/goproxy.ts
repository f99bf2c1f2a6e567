// goproxy (Go) for comparison: intercepts CONNECT, keeps minted leaves, verifies upstream, HTTP/2 for clients, HTTP/1.1 to the
// origin. Its program is bench/peers/goproxy, built with `go build`; one thread runs Go code, as all others have one core.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Peer, findProgram, peersCache, peersFolder, startPeer } from '../support/peer.ts';
import { throughProxy } from '../support/subject.ts';

const BUILD_MS = 60_000;
const binary: string = join(peersCache, 'goproxy');

export const goproxy: Peer = {
  name: 'goproxy',
  install: 'install Go, then npm run bench:peers -- goproxy',
  find: () => (existsSync(binary) ? { path: binary, version: '1.9.2' } : undefined),
  build() {
    const go = findProgram('go', 'version');
    if (go === undefined || existsSync(binary)) return;
    mkdirSync(peersCache, { recursive: true });
    // What was compiled when the time is over stays in Go's cache for the next attempt.
    spawnSync(go.path, ['build', '-o', binary, '.'], {
      cwd: join(peersFolder, 'goproxy'),
      timeout: BUILD_MS,
    });
  },
  async start({ path }, children, scene) {
    const { certFile, keyFile, pem } = scene.peerCa;
    const { port, pid } = await startPeer('goproxy', children, scene, {
      command: (_, listenPort) => [path, `127.0.0.1:${listenPort}`, certFile, keyFile, scene.caFile],
      env: { BENCH_CREDENTIAL: scene.credential, GOMAXPROCS: '1' },
    });
    return {
      name: 'goproxy',
      about: 'Go library for intercepting proxies; HTTP/1.1 to the origin; writes no log',
      pid,
      protocols: ['h1', 'h2'],
      upstream: 'h1',
      isForward: true,
      target: throughProxy({ port, caPem: pem }),
    };
  },
};
