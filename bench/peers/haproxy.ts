// HAProxy for comparison, with HTTP/2 on both sides: one thread, the same certificates, header and verification; its log
// goes to a file, with one write for each line: HAProxy buffers only logs that it sends to a log server. It shares upstream connections between clients, and is reached with TLS directly.
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { type Peer, findProgram, startPeer } from '../support/peer.ts';
import { type Scene, hosts } from '../support/scene.ts';
import { throughReverseProxy } from '../support/subject.ts';

export const haproxy: Peer = {
  name: 'haproxy',
  install: 'apt-get install haproxy',
  find: () => findProgram('haproxy'),
  async start({ path }, children, scene) {
    const { port, pid } = await startPeer('haproxy', children, scene, {
      files: (directory, listenPort) => ({
        'leaf.pem': readFileSync(scene.certFile, 'utf8') + readFileSync(scene.keyFile, 'utf8'),
        'haproxy.cfg': haproxyConfig(scene, directory, listenPort),
      }),
      // In the foreground and without a master process.
      command: (directory) => [path, '-db', '-f', join(directory, 'haproxy.cfg')],
      isUnprivileged: true,
    });
    return {
      name: 'haproxy',
      about:
        'reverse proxy with one fixed upstream, no CONNECT; HTTP/2 on both sides; writes an unbuffered log',
      pid,
      protocols: ['h2'],
      isForward: false,
      target: throughReverseProxy({ port, caPem: scene.caPem }),
    };
  },
};

function haproxyConfig(scene: Scene, directory: string, port: number): string {
  return `
global
  nbthread 1
  maxconn 1000
  log stdout format raw local0
  ssl-default-bind-options ssl-min-ver TLSv1.3
  ssl-default-server-options ssl-min-ver TLSv1.3
defaults
  mode http
  log global
  option httplog
  timeout connect 5s
  timeout client 600s
  timeout server 600s
frontend clients
  bind 127.0.0.1:${port} ssl crt ${join(directory, 'leaf.pem')} alpn h2,http/1.1
  default_backend origin
backend origin
  http-reuse always
  http-request set-header Authorization "${scene.credential}"
  server origin 127.0.0.1:${scene.originPort} ssl verify required ca-file ${scene.caFile} sni str(${hosts.rule}) verifyhost ${hosts.rule} alpn h2
`;
}
