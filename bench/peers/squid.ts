// squid with ssl-bump for comparison: intercepts every CONNECT with a minted leaf, replaces Authorization, verifies upstream,
// HTTP/1.1 only, no cache; its access log goes to a file.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Peer, findProgram, startPeer } from '../support/peer.ts';
import { type Scene, hosts } from '../support/scene.ts';
import { throughProxy } from '../support/subject.ts';

const HELPERS = ['/usr/lib/squid/security_file_certgen', '/usr/lib64/squid/security_file_certgen'] as const;
const helper: string | undefined = HELPERS.find((file) => existsSync(file));

export const squid: Peer = {
  name: 'squid',
  install: 'apt-get install squid-openssl',
  // Without the helper it was built without OpenSSL and cannot intercept.
  find: () => (helper === undefined ? undefined : findProgram('squid')),
  async start({ path }, children, scene) {
    const { port, pid } = await startPeer('squid', children, scene, {
      files: (directory, listenPort) => ({
        'squid.conf': squidConfig(scene, directory, listenPort),
        hosts: `127.0.0.1 ${Object.values(hosts).join(' ')}\n`,
      }),
      prepare(directory) {
        const made = spawnSync(helper ?? '', ['-c', '-s', join(directory, 'leaves'), '-M', '4MB']);
        if (made.status !== 0)
          throw new Error(`squid's store of leaves cannot be made: ${String(made.stderr)}`);
        spawnSync('chown', ['-R', 'nobody', join(directory, 'leaves')]);
      },
      command: (directory) => [path, '-N', '-f', join(directory, 'squid.conf')],
      isUnprivileged: true,
    });
    return {
      name: 'squid',
      about: 'forward proxy with ssl-bump; HTTP/1.1 only; writes an access log',
      pid,
      protocols: ['h1'],
      isForward: true,
      target: throughProxy({ port, caPem: scene.peerCa.pem }),
    };
  },
};

function squidConfig(scene: Scene, directory: string, port: number): string {
  const { certFile, keyFile } = scene.peerCa;
  return `
http_port 127.0.0.1:${port} ssl-bump tls-cert=${certFile} tls-key=${keyFile} generate-host-certificates=on dynamic_cert_mem_cache_size=4MB
sslcrtd_program ${helper} -s ${join(directory, 'leaves')} -M 4MB
sslcrtd_children 1
ssl_bump bump all
tls_outgoing_options cafile=${scene.caFile} min-version=1.3
http_access allow all
request_header_access Authorization deny all
request_header_add Authorization "${scene.credential}" all
cache deny all
hosts_file ${join(directory, 'hosts')}
access_log stdio:${join(directory, 'access.log')} logformat=squid buffer-size=64KB
cache_log ${join(directory, 'cache.log')}
pid_filename ${join(directory, 'squid.pid')}
coredump_dir ${directory}
max_filedescriptors 8192
client_persistent_connections on
server_persistent_connections on
client_idle_pconn_timeout 600 seconds
pconn_timeout 600 seconds
via off
forwarded_for delete
shutdown_lifetime 0 seconds
`;
}
