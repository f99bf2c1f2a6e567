// nginx as the peer: one worker, a fixed reverse proxy that ends TLS with the same kind of certificate and sets the
// same Authorization; upstream TLS verified, with session reuse, HTTP/1.1 and many idle connections. It is reached
// by TLS directly: it does not speak CONNECT.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Children, childrenOf } from './children.ts';
import { connectTo } from './connection.ts';
import { type Scene, PROXY_CORE, findFreePort, hosts, withOutput } from './scene.ts';

export type Nginx = {
  readonly port: number;
  readonly workerPid: number;
  readonly accessLog: string;
};

/** nobody, where we could become anybody. */
const UNPRIVILEGED = process.getuid?.() === 0 ? 65_534 : undefined;
const START_DEADLINE_MS = 5_000;

/** Its path and version, if it is installed. */
export function findNginx(): { readonly path: string; readonly version: string } | undefined {
  // A login shell of an ordinary user has no sbin.
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  const path = directories.map((directory) => join(directory, 'nginx')).find((file) => existsSync(file));
  if (path === undefined) return undefined;
  const { stderr } = spawnSync(path, ['-v'], { encoding: 'utf8' });
  return { path, version: /nginx\/([\d.]+)/.exec(stderr)?.[1] ?? 'unknown' };
}

export async function startNginx(path: string, children: Children, scene: Scene): Promise<Nginx> {
  const directory = join(scene.directory, 'nginx');
  await mkdir(directory);
  if (UNPRIVILEGED !== undefined) await chown(directory, UNPRIVILEGED, UNPRIVILEGED);
  const port = await findFreePort();
  const configFile = join(directory, 'nginx.conf');
  await writeFile(configFile, nginxConfig(scene, port));
  const outputFile = join(directory, 'output');
  const command = [path, '-p', directory, '-e', 'stderr', '-c', configFile];
  const master = withOutput(outputFile, (fd) =>
    children.start('nginx', command, {
      core: PROXY_CORE,
      output: fd,
      errors: fd,
      ...(UNPRIVILEGED === undefined ? {} : { uid: UNPRIVILEGED }),
    }),
  );
  const workerPid = await waitForWorker(master.pid, port, outputFile);
  return { port, workerPid, accessLog: join(directory, 'access.log') };
}

async function waitForWorker(masterPid: number, port: number, outputFile: string): Promise<number> {
  const endMs = performance.now() + START_DEADLINE_MS;
  while (performance.now() < endMs) {
    const [workerPid] = childrenOf(masterPid);
    const socket = workerPid === undefined ? undefined : await connectTo(port).catch(() => undefined);
    if (workerPid !== undefined && socket !== undefined) {
      socket.destroy();
      return workerPid;
    }
    await delay(10);
  }
  throw new Error(`nginx does not start:\n${readFileSync(outputFile, 'utf8')}`);
}

export function nginxConfig(scene: Scene, port: number): string {
  return `
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  access_log access.log combined buffer=64k flush=1s;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  upstream origin {
    server 127.0.0.1:${scene.originPort};
    keepalive 256;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
  }
  server {
    listen 127.0.0.1:${port} ssl;
    server_name ${hosts.rule};
    ssl_certificate ${scene.certFile};
    ssl_certificate_key ${scene.keyFile};
    ssl_protocols TLSv1.3;
    ssl_session_cache shared:clients:1m;
    location / {
      proxy_pass https://origin;
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
    }
  }
}
`;
}
