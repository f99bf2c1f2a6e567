// `sallyport start`: the sidecar and a local TLS echo origin on the example configuration, and the lines to paste.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError, readInput } from '../base/input-error.ts';
import { createFdSink } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import { type AdminTokenSource, loadAdminToken } from '../sidecar/admin-token.ts';
import { parseConfig } from '../sidecar/config.ts';
import { claimSecrets, handOverSecretVariables } from '../sidecar/secret-environment.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { loadOrCreateCertificateAuthority } from '../tls/certificate-authority.ts';
import { preventCoreDumps } from './process/core-dumps.ts';
import { readDocument } from './document.ts';
import { type LocalOrigin, createCallbackEndpoint, createEchoOrigin } from './echo-origin.ts';
import { formatIssues } from './issue-lines.ts';
import { packageRoot } from './package-root.ts';
import { refuseRuntimeSwitches } from './process/runtime-switches.ts';
import { adminTokenSource, environmentWarnings } from './settings.ts';

const ORIGIN_PORT = 9443;
const CALLBACK_PORT = 9444;
const DEMO_TOKEN: Secret = new Secret('demo-token-4f1c9a');

/** Runs until SIGINT or SIGTERM. */
export async function run(): Promise<number> {
  refuseRuntimeSwitches(process.env);
  handOverSecretVariables();
  const handed = claimSecrets(process.env);
  const cores = preventCoreDumps();
  for (const warning of [...cores.warnings, ...environmentWarnings(process.env)])
    process.stderr.write(`sallyport: ${warning}\n`);
  const certs = process.env['SALLYPORT_STATE_DIR'] ?? join(packageRoot, 'certs');
  await mkdir(certs, { recursive: true });
  await using origin = await createEchoOrigin({ port: ORIGIN_PORT, echo: true });
  await using _callback = await createCallbackEndpoint({
    port: CALLBACK_PORT,
    headers: (host) => ({ 'X-Api-Key': `from-callback-for-${host}` }),
  });
  const originCa = join(certs, 'origin-ca.pem');
  await writeFile(originCa, origin.caPem);
  const rules = join(packageRoot, 'config', 'proxy-config.example.json');

  const files = { certificateFile: join(certs, 'ca.pem'), keyFile: join(certs, 'ca.key') };
  const { ca } = await readInput(() => loadOrCreateCertificateAuthority(files));
  const config = parseConfig({}, { SALLYPORT_UPSTREAM_CA: originCa, ...process.env });
  if (!config.ok) {
    process.stderr.write(formatIssues('configuration', config.issues));
    return 2;
  }
  if (config.value.admin.listen === 'off')
    throw new InputError('the last of the lines to paste needs the admin API: unset SALLYPORT_ADMIN_LISTEN');
  const sidecar = await createSidecar(config.value, { ca, sink: createFdSink(1) });
  try {
    const source = adminTokenSource({ ...config.value, stateDir: certs }, handed);
    const admin = await open(sidecar, rules, source);
    if (admin === undefined) return 2;
    process.stderr.write(linesToPaste({ sidecar, admin, origin, rules, certs, source }));
    const { promise, resolve } = Promise.withResolvers<void>();
    process.once('SIGINT', resolve).once('SIGTERM', resolve);
    await promise;
    return 0;
  } finally {
    await sidecar.close();
  }
}

/** Puts the rules in force and opens the doors; answers the URL of the admin API. */
async function open(sidecar: Sidecar, rules: string, source: AdminTokenSource): Promise<string | undefined> {
  const lookup = (name: string): Secret | undefined => (name === 'DEMO_TOKEN' ? DEMO_TOKEN : undefined);
  const applied = sidecar.applyProxyConfig(await readDocument(rules), lookup);
  if (!applied.ok) {
    process.stderr.write(formatIssues(rules, applied.issues));
    return undefined;
  }
  const token = await readInput(() => loadAdminToken(source));
  await sidecar.listen();
  return sidecar.openAdmin(token);
}

function linesToPaste(scene: {
  readonly sidecar: Sidecar;
  readonly admin: string;
  readonly origin: LocalOrigin;
  readonly rules: string;
  readonly certs: string;
  readonly source: AdminTokenSource;
}): string {
  const { sidecar, admin, origin, rules, certs, source } = scene;
  const proxy = `http://${sidecar.proxyAddress}:${sidecar.proxyPort}`;
  const url = `https://api.localhost:${origin.port}/v1/hello`;
  const token = 'file' in source ? `$(cat ${source.file})` : '$SALLYPORT_ADMIN_TOKEN';
  return `
The proxy listens on ${proxy}. Paste, in another terminal:

  direct         curl --cacert ${join(certs, 'origin-ca.pem')} ${url}
  by the proxy   curl --cacert ${join(certs, 'ca.pem')} -x ${proxy} ${url}
  another rule   sed s/sallyport-demo/changed/ ${rules} | curl -T - -H 'Content-Type: application/json' -H "Authorization: Bearer ${token}" ${admin}/v1/proxy_config

Ctrl-C ends it.

`;
}
