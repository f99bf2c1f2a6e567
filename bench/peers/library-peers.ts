// The peers that are libraries for intercepting proxies in compiled languages, with a program of ours around each: goproxy (Go) and
// hudsucker (Rust). Both intercept CONNECT, keep minted leaves, verify upstream, and speak HTTP/2 to clients and HTTP/1.1 to the
// origin. One thread runs their code, as all others have one core.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Children } from '../support/children.ts';
import { type Peer, peersCache, startPeer } from '../support/peer.ts';
import type { Scene } from '../support/scene.ts';
import { type Subject, throughProxy } from '../support/subject.ts';

type Library = {
  readonly name: string;
  readonly language: string;
  readonly version: string;
  readonly binary: string;
  readonly env?: Readonly<Record<string, string>>;
};

/**
 * Its program is bench/peers/goproxy, built with `go build`. goproxy 1.9.2 forwards the origin's Keep-Alive over HTTP/2, where
 * it is malformed (RFC 9113 §8.2.2), and the client resets the stream: the origins of the benchmark do not send it.
 */
export const goproxy: Peer = libraryPeer({
  name: 'goproxy',
  language: 'Go',
  version: '1.9.2',
  binary: join(peersCache, 'goproxy'),
  env: { GOMAXPROCS: '1' },
});

/** Its program is bench/peers/hudsucker, built with `cargo build --release`. */
export const hudsucker: Peer = libraryPeer({
  name: 'hudsucker',
  language: 'Rust',
  version: '0.25.0',
  binary: join(peersCache, 'cargo', 'release', 'hudsucker-bench'),
});

function libraryPeer(library: Library): Peer {
  const { name, language, version, binary } = library;
  return {
    name,
    install: `install ${language}, then npm run bench:peers -- ${name}`,
    find: () => (existsSync(binary) ? { path: binary, version } : undefined),
    start: (_, children, scene) => startLibrary(library, children, scene),
  };
}

async function startLibrary(library: Library, children: Children, scene: Scene): Promise<Subject> {
  const { name, language, binary, env } = library;
  const { certFile, keyFile, pem } = scene.peerCa;
  const { port, pid } = await startPeer(name, children, scene, {
    command: (_, listenPort) => [binary, `127.0.0.1:${listenPort}`, certFile, keyFile, scene.caFile],
    env: { BENCH_CREDENTIAL: scene.credential, ...env },
  });
  return {
    name,
    about: `${language} library for intercepting proxies; HTTP/1.1 to the origin; writes no log`,
    pid,
    protocols: ['h1', 'h2'],
    upstream: 'h1',
    isForward: true,
    target: throughProxy({ port, caPem: pem }),
  };
}
