// `sallyport start`: the sidecar and a local TLS echo origin with the example configuration, and commands to paste.
import { join, resolve, sep } from 'node:path';
import { InputError, readInput } from '../base/input-error.ts';
import { formatAddress, toReachable } from '../base/listen-address.ts';
import { createFdSink } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import { shellWord } from '../base/variables/shell-export.ts';
import { type AdminTokenSource, loadAdminToken } from '../sidecar/access-tokens.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { publishFile } from '../sidecar/state/published-bundle.ts';
import { loadOrCreateCertificateAuthority } from '../tls/certificate-authority.ts';
import { parseCommandLine } from './command/declaration.ts';
import { startCommand } from './command/sidecar-commands.ts';
import { readDocument } from './document.ts';
import {
  type LocalCallback,
  type LocalOrigin,
  createCallbackEndpoint,
  createEchoOrigin,
} from './echo-origin.ts';
import { packageRoot } from './package-root.ts';
import { prepareProcess } from './process/startup.ts';
import {
  adminTokenSource,
  caFiles,
  prepareState,
  readConfig,
  reportApplied,
  stateDirectory,
  writingTo,
} from './settings.ts';

const ORIGIN_PORT = 9443;
const CALLBACK_PORT = 9444;
const DEMO_TOKEN: Secret = new Secret('demo-token-4f1c9a');

/** Runs until SIGINT or SIGTERM. */
export async function run(args: readonly string[]): Promise<number> {
  const { values: flags } = parseCommandLine(startCommand, args);
  const originPort = parsePort(flags['origin-port'], ORIGIN_PORT, '--origin-port');
  const callbackPort = parsePort(flags['callback-port'], CALLBACK_PORT, '--callback-port');
  const { handed, warnings } = prepareProcess();
  for (const warning of warnings) process.stderr.write(`sallyport: ${warning}\n`);
  const certs = stateOf(flags['state-dir'] ?? process.env['SALLYPORT_STATE_DIR']);
  const state = { stateDir: certs, ca: undefined };
  await prepareState(state);
  const files = caFiles(state);
  const { ca } = await writingTo(certs, () => loadOrCreateCertificateAuthority(files));
  await using origin = await createEchoOrigin({ port: originPort, echo: true });
  await using callback = await createCallbackEndpoint({
    port: callbackPort,
    headers: (host) => ({ 'X-Api-Key': `from-callback-for-${host}` }),
  });
  const originCa = join(certs, 'origin-ca.pem');
  await writingTo(certs, () => publishFile(originCa, Buffer.from(origin.caPem)));
  const config = await readConfig(flags, { SALLYPORT_UPSTREAM_CA: originCa, ...process.env });
  if (!config) return 2;
  if (config.admin.listen === 'off')
    throw new InputError('the last command to paste needs the admin API: unset SALLYPORT_ADMIN_LISTEN');
  const rules = join(packageRoot, 'config', 'proxy-config.example.json');
  const sidecar = await createSidecar(config, { ca, sink: createFdSink(1) });
  try {
    const lookup = (name: string): Secret | undefined => (name === 'DEMO_TOKEN' ? DEMO_TOKEN : undefined);
    const applied = sidecar.applyProxyConfig(withCallback(await readDocument(rules), callback.url), lookup);
    if (!(await reportApplied(sidecar, applied, rules))) return 2;
    const source = adminTokenSource({ ...config, stateDir: certs }, handed);
    const token = await readInput(() => loadAdminToken(source));
    await sidecar.listen();
    const admin = await sidecar.openAdmin(token);
    const certificates = { ofProxy: files.certificateFile, ofOrigin: originCa };
    process.stderr.write(commandsToPaste({ sidecar, admin, origin, callback, rules, certificates, source }));
    const { promise, resolve } = Promise.withResolvers<void>();
    process.once('SIGINT', resolve).once('SIGTERM', resolve);
    await promise;
    return 0;
  } finally {
    await sidecar.close();
  }
}

/** In a checkout beside the example, where it is documented; a package keeps nothing among installed files. */
export function stateOf(given: string | undefined, root: string = packageRoot): string {
  if (given !== undefined && given !== '') return resolve(given);
  const isInstalled = root.split(sep).includes('node_modules');
  return isInstalled ? join(stateDirectory({ stateDir: undefined }), 'start') : join(root, 'certs');
}

function parsePort(given: string | undefined, fallback: number, option: string): number {
  if (given === undefined) return fallback;
  const port = /^[0-9]{1,5}$/.test(given) ? Number(given) : Number.NaN;
  if (!(port <= 65_535)) throw new InputError(`${option} must be a port from 0 to 65535`);
  return port;
}

/** The example names the default port of the callback endpoint. */
function withCallback(document: unknown, url: string): unknown {
  const { host } = new URL(url);
  return JSON.parse(JSON.stringify(document).replaceAll(`127.0.0.1:${CALLBACK_PORT}`, host));
}

function commandsToPaste(running: {
  readonly sidecar: Sidecar;
  readonly admin: string;
  readonly origin: LocalOrigin;
  readonly callback: LocalCallback;
  readonly rules: string;
  readonly certificates: { readonly ofProxy: string; readonly ofOrigin: string };
  readonly source: AdminTokenSource;
}): string {
  const { sidecar, admin, origin, callback, rules, certificates, source } = running;
  const listener = { host: sidecar.proxyAddress, port: sidecar.proxyPort };
  const proxy = `http://${formatAddress(toReachable(listener))}`;
  const url = `https://api.localhost:${origin.port}/v1/hello`;
  const token = 'file' in source ? `$(cat ${shellWord(source.file)})` : '$SALLYPORT_ADMIN_TOKEN';
  const socket = admin.startsWith('unix:') ? admin.slice('unix:'.length) : undefined;
  const api = socket === undefined ? admin : `--unix-socket ${shellWord(socket)} http://localhost`;
  const callbackPort = new URL(callback.url).port;
  const movePort = callbackPort === String(CALLBACK_PORT) ? '' : ` -e s/:${CALLBACK_PORT}/:${callbackPort}/`;
  return `
The proxy listens on ${proxy}. Paste into another terminal:

  direct        curl --cacert ${shellWord(certificates.ofOrigin)} ${url}
  via proxy     curl --cacert ${shellWord(certificates.ofProxy)} -x ${proxy} ${url}
  change rule   sed -e s/sallyport-demo/changed/${movePort} ${shellWord(rules)} | curl -T - -H 'Content-Type: application/json' -H "Authorization: Bearer ${token}" ${api}/v1/proxy_config

The echo server puts the request that it received into the body of its response, so the second command shows the
injected credential: response bodies are masked only with scrub: body (SALLYPORT_SCRUB=body npm start).
After the third command the second one shows "X-Client: changed". Ctrl-C stops the proxy.

`;
}
