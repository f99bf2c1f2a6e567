// The real clients: which of them are installed, how they are configured for the proxy, and a note that each one ran, with
// which CI checks that nothing was skipped.
import { spawnSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { cleanEnvironment, type Finished, runToEnd } from '../support/spawned-process.ts';

export type ClientName =
  | 'curl'
  | 'node-fetch'
  | 'node-https'
  | 'python-urllib'
  | 'python-requests'
  | 'python-httpx'
  | 'git'
  | 'ws'
  | 'node-websocket'
  | 'python-websockets'
  | 'grpc-js'
  | 'python-grpcio'
  | 'node-http2'
  | 'python-httpx-h2'
  | 'go-net-http';

const python: string = process.env['SALLYPORT_TEST_PYTHON'] ?? 'python3';
const scripts: string = join(import.meta.dirname, 'clients');

/** The program and first arguments of a client, and how to check whether it is installed. */
const clients: Readonly<Record<ClientName, { run: readonly string[]; probe: readonly string[] }>> = {
  curl: { run: ['curl', '--silent', '--show-error'], probe: ['curl', '--version'] },
  git: { run: ['git'], probe: ['git', '--version'] },
  'node-fetch': nodeScript('with-fetch.js'),
  'node-https': nodeScript('with-https.js'),
  ws: nodeScript('with-ws.js'),
  'node-websocket': nodeScript('with-websocket.js'),
  'python-websockets': pythonScript('with_websockets.py', 'websockets.sync.client'),
  'grpc-js': nodeScript('with-grpc.js'),
  'python-grpcio': pythonScript('with_grpcio.py', 'grpc'),
  'node-http2': nodeScript('with-http2.js'),
  'python-httpx-h2': pythonScript('with_httpx_h2.py', 'httpx, h2'),
  'go-net-http': { run: ['go', 'run', join(scripts, 'with_net_http.go')], probe: ['go', 'version'] },
  'python-urllib': pythonScript('with_urllib.py', 'urllib.request'),
  'python-requests': pythonScript('with_requests.py', 'requests'),
  'python-httpx': pythonScript('with_httpx.py', 'httpx'),
};

/** False when the client is not installed: its tests are skipped, and CI, which installs all, fails. */
export function isInstalled(name: ClientName): boolean {
  const known = installed.get(name);
  if (known !== undefined) return known;
  const [program = '', ...args] = clients[name].probe;
  const found = spawnSync(program, args, { env: cleanEnvironment(), stdio: 'ignore' }).status === 0;
  installed.set(name, found);
  return found;
}

const installed = new Map<ClientName, boolean>();

/** The name for a title, with the reason why its tests are skipped if they are. */
export function titleOf(name: ClientName): string {
  return isInstalled(name) ? name : `${name} (skipped: not installed)`;
}

/** Runs a client behind the proxy until it ends. */
export async function runClient(
  name: ClientName,
  args: readonly string[],
  proxy: { readonly url: string; readonly caFile: string },
): Promise<Finished> {
  const [program = '', ...first] = clients[name].run;
  const finished = await runToEnd(program, [...first, ...args], { env: clientEnvironment(proxy) });
  const file = process.env['SALLYPORT_CLIENTS_RAN'];
  if (file !== undefined) appendFileSync(file, `${name}\n`);
  return finished;
}

/** The environment variables with which these clients use the proxy and trust its CA. */
export function clientEnvironment(proxy: {
  readonly url: string;
  readonly caFile: string;
}): Record<string, string> {
  const { url, caFile } = proxy;
  return {
    HTTPS_PROXY: url,
    https_proxy: url,
    // Lower case only: curl and others ignore HTTP_PROXY, which a CGI client could set by a Proxy header.
    http_proxy: url,
    NODE_USE_ENV_PROXY: '1',
    NODE_EXTRA_CA_CERTS: caFile,
    SSL_CERT_FILE: caFile,
    CURL_CA_BUNDLE: caFile,
    REQUESTS_CA_BUNDLE: caFile,
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: caFile,
    GIT_SSL_CAINFO: caFile,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
  };
}

function nodeScript(file: string): { run: readonly string[]; probe: readonly string[] } {
  return { run: [process.execPath, join(scripts, file)], probe: [process.execPath, '--version'] };
}

function pythonScript(file: string, module: string): { run: readonly string[]; probe: readonly string[] } {
  return { run: [python, join(scripts, file)], probe: [python, '-c', `import ${module}`] };
}
