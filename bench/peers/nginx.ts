// nginx for comparison: one worker, a fixed reverse proxy that terminates TLS with the same kind of certificate and sets the
// same Authorization; HTTP/1.1 and HTTP/2 from clients, verified upstream TLS with session reuse, HTTP/1.1 and more idle
// connections than there are streams. It is reached with TLS directly: it does not support CONNECT.
import { join } from 'node:path';
import { type Peer, findProgram, startPeer } from '../support/peer.ts';
import { type Scene, hosts } from '../support/scene.ts';
import { throughReverseProxy } from '../support/subject.ts';

export const nginx: Peer = {
  name: 'nginx',
  install: 'apt-get install nginx',
  find: () => findProgram('nginx'),
  async start({ path }, children, scene) {
    const bodyPort = await scene.startBodyOrigin();
    const { port, pid } = await startPeer('nginx', children, scene, {
      files: (_, listenPort) => ({ 'nginx.conf': nginxConfig(scene, listenPort, bodyPort) }),
      command: (directory) => [path, '-p', directory, '-e', 'stderr', '-c', join(directory, 'nginx.conf')],
      isUnprivileged: true,
    });
    return {
      name: 'nginx',
      about:
        'reverse proxy with one fixed upstream, no CONNECT; HTTP/1.1 to the origin; writes an access log',
      pid,
      protocols: ['h1', 'h2'],
      upstream: 'h1',
      isForward: false,
      target: throughReverseProxy({ port, caPem: scene.caPem }),
    };
  },
};

function nginxConfig(scene: Scene, port: number, bodyPort: number): string {
  return `
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  access_log access.log combined buffer=64k flush=1s;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  upstream origin {
    server 127.0.0.1:${scene.originPort};
    keepalive 512;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
  }
  upstream bodies {
    server 127.0.0.1:${bodyPort};
    keepalive 64;
  }
  server {
    listen 127.0.0.1:${port} ssl http2;
    server_name ${hosts.rule};
    ssl_certificate ${scene.certFile};
    ssl_certificate_key ${scene.keyFile};
    ssl_protocols TLSv1.3;
    ssl_session_cache shared:clients:1m;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $http_host;
    proxy_set_header Authorization "${scene.credential}";
    proxy_ssl_protocols TLSv1.3;
    proxy_ssl_verify on;
    proxy_ssl_verify_depth 2;
    proxy_ssl_trusted_certificate ${scene.caFile};
    proxy_ssl_name ${hosts.rule};
    proxy_ssl_server_name on;
    proxy_ssl_session_reuse on;
    location / { proxy_pass https://origin; }
    # As a proxy that streams: nothing is stored in files, events are not held back.
    location ~ ^/v1/(down|up)$ {
      proxy_pass https://bodies;
      proxy_request_buffering off;
      proxy_max_temp_file_size 0;
      client_max_body_size 0;
    }
    location = /v1/events { proxy_pass https://bodies; proxy_buffering off; }
  }
}
`;
}
