// `sallyport start`: the sidecar and a local TLS echo origin with the example configuration, and commands to paste.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError, readInput } from '../base/input-error.ts';
import { createFdSink } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import { type AdminTokenSource, loadAdminToken } from '../sidecar/access-tokens.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { loadOrCreateCertificateAuthority } from '../tls/certificate-authority.ts';
import { parseCommandLine } from './command/declaration.ts';
import { startCommand } from './command/sidecar-commands.ts';
import { readDocument } from './document.ts';
import { type LocalOrigin, createCallbackEndpoint, createEchoOrigin } from './echo-origin.ts';
import { packageRoot } from './package-root.ts';
import { prepareProcess } from './process/startup.ts';
import { adminTokenSource, caFiles, prepareState, readConfig, reportApplied, writingTo } from './settings.ts';

const ORIGIN_PORT = 9443;
const CALLBACK_PORT = 9444;
const DEMO_TOKEN: Secret = new Secret('demo-token-4f1c9a');

/** Runs until SIGINT or SIGTERM. */
export async function run(args: readonly string[]): Promise<number> {
  parseCommandLine(startCommand, args);
  const { handed, warnings } = await prepareProcess();
  for (const warning of warnings) process.stderr.write(`sallyport: ${warning}\n`);
  const certs = process.env['SALLYPORT_STATE_DIR'] ?? join(packageRoot, 'certs');
  const state = { stateDir: certs, ca: undefined };
  await prepareState(state);
  const files = caFiles(state);
  const { ca } = await writingTo(certs, () => loadOrCreateCertificateAuthority(files));
  await using origin = await createEchoOrigin({ port: ORIGIN_PORT, echo: true });
  await using _callback = await createCallbackEndpoint({
    port: CALLBACK_PORT,
    headers: (host) => ({ 'X-Api-Key': `from-callback-for-${host}` }),
  });
  const originCa = join(certs, 'origin-ca.pem');
  await writeFile(originCa, origin.caPem);
  const config = await readConfig({}, { SALLYPORT_UPSTREAM_CA: originCa, ...process.env });
  if (!config) return 2;
  if (config.admin.listen === 'off')
    throw new InputError('the last command to paste needs the admin API: unset SALLYPORT_ADMIN_LISTEN');
  const rules = join(packageRoot, 'config', 'proxy-config.example.json');
  const sidecar = await createSidecar(config, { ca, sink: createFdSink(1) });
  try {
    const lookup = (name: string): Secret | undefined => (name === 'DEMO_TOKEN' ? DEMO_TOKEN : undefined);
    const applied = sidecar.applyProxyConfig(await readDocument(rules), lookup);
    if (!reportApplied(sidecar, applied, rules)) return 2;
    const source = adminTokenSource({ ...config, stateDir: certs }, handed);
    const token = await readInput(() => loadAdminToken(source));
    await sidecar.listen();
    const admin = await sidecar.openAdmin(token);
    const certificates = { ofProxy: files.certificateFile, ofOrigin: originCa };
    process.stderr.write(commandsToPaste({ sidecar, admin, origin, rules, certificates, source }));
    const { promise, resolve } = Promise.withResolvers<void>();
    process.once('SIGINT', resolve).once('SIGTERM', resolve);
    await promise;
    return 0;
  } finally {
    await sidecar.close();
  }
}

function commandsToPaste(running: {
  readonly sidecar: Sidecar;
  readonly admin: string;
  readonly origin: LocalOrigin;
  readonly rules: string;
  readonly certificates: { readonly ofProxy: string; readonly ofOrigin: string };
  readonly source: AdminTokenSource;
}): string {
  const { sidecar, admin, origin, rules, certificates, source } = running;
  const proxy = `http://${sidecar.proxyAddress}:${sidecar.proxyPort}`;
  const url = `https://api.localhost:${origin.port}/v1/hello`;
  const token = 'file' in source ? `$(cat ${source.file})` : '$SALLYPORT_ADMIN_TOKEN';
  return `
The proxy listens on ${proxy}. Paste into another terminal:

  direct        curl --cacert ${certificates.ofOrigin} ${url}
  via proxy     curl --cacert ${certificates.ofProxy} -x ${proxy} ${url}
  change rule   sed s/sallyport-demo/changed/ ${rules} | curl -T - -H 'Content-Type: application/json' -H "Authorization: Bearer ${token}" ${admin}/v1/proxy_config

The echo server puts the request that it received into the body of its response, so the second command shows the
injected credential: response bodies are masked only with scrub: body (SALLYPORT_SCRUB=body npm start).
After the third command the second one shows "X-Client: changed". Ctrl-C stops the proxy.

`;
}
