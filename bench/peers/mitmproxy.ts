// mitmproxy (Python) for comparison: mitmdump with an addon that sets Authorization; verifies upstream; HTTP/2 on both sides
// for clients of HTTP/2.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Peer, findProgram, peersCache, startPeer } from '../support/peer.ts';
import { throughProxy } from '../support/subject.ts';

const installed: string = join(peersCache, 'python', 'bin', 'mitmdump');
/** Every name resolves to 127.0.0.1, as in the whole benchmark. */
const ADDON = `
import os

class Inject:
    def server_connect(self, data):
        host, port = data.server.address
        data.server.sni = data.server.sni or host
        data.server.address = ("127.0.0.1", port)

    def request(self, flow):
        flow.request.headers["Authorization"] = os.environ["BENCH_CREDENTIAL"]

addons = [Inject()]
`;

export const mitmproxy: Peer = {
  name: 'mitmproxy',
  install: 'install Python, then npm run bench:peers -- mitmproxy',
  find() {
    const program = findProgram('mitmdump', '--version');
    if (!existsSync(installed)) return program;
    const packages = readFileSync(join(peersCache, 'python', 'mitmproxy.version'), 'utf8').trim();
    return { path: installed, version: packages };
  },
  async start({ path }, children, scene) {
    const upstream = `ssl_verify_upstream_trusted_ca=${scene.caFile}`;
    const { port, pid, directory } = await startPeer('mitmproxy', children, scene, {
      files: () => ({ 'addon.py': ADDON }),
      command: (folder, listenPort) => [
        path,
        '-q',
        ...['--listen-host', '127.0.0.1', '--listen-port', String(listenPort)],
        ...['--set', `confdir=${folder}`, '--set', upstream, '-s', join(folder, 'addon.py')],
      ],
      env: { BENCH_CREDENTIAL: scene.credential, LANG: 'C.UTF-8' },
    });
    const certificate = join(directory, 'mitmproxy-ca-cert.pem');
    while (!existsSync(certificate)) await delay(10);
    return {
      name: 'mitmproxy',
      about: 'Python program for intercepting and inspecting; RSA leaves; writes no log',
      pid,
      protocols: ['h1', 'h2'],
      isForward: true,
      target: throughProxy({ port, caPem: readFileSync(certificate, 'utf8') }),
    };
  },
};
