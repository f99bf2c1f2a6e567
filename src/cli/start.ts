// `sallyport start`: the sidecar and a local TLS echo origin on the example configuration, and the lines to paste.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createFdSink } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import { loadAdminToken } from '../sidecar/admin-token.ts';
import { parseConfig } from '../sidecar/config.ts';
import { createSidecar } from '../sidecar/sidecar.ts';
import { loadOrCreateCertificateAuthority } from '../tls/certificate-authority.ts';
import { readDocument } from './document.ts';
import { createCallbackEndpoint, createEchoOrigin } from './echo-origin.ts';
import { formatIssues } from './issue-lines.ts';
import { packageRoot } from './package-root.ts';

const ORIGIN_PORT = 9443;
const CALLBACK_PORT = 9444;
const DEMO_TOKEN: Secret = new Secret('demo-token-4f1c9a');

/** Runs until SIGINT or SIGTERM. */
export async function run(): Promise<number> {
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
  const tokenFile = join(certs, 'admin-token');

  const files = { certificateFile: join(certs, 'ca.pem'), keyFile: join(certs, 'ca.key') };
  const { ca } = await loadOrCreateCertificateAuthority(files);
  const config = parseConfig({}, { SALLYPORT_UPSTREAM_CA: originCa, ...process.env });
  if (!config.ok) {
    process.stderr.write(formatIssues('configuration', config.issues));
    return 2;
  }
  const sidecar = await createSidecar(config.value, { ca, sink: createFdSink(1) });
  const lookup = (name: string): Secret | undefined => (name === 'DEMO_TOKEN' ? DEMO_TOKEN : undefined);
  const applied = sidecar.applyProxyConfig(await readDocument(rules), lookup);
  if (!applied.ok) {
    process.stderr.write(formatIssues(rules, applied.issues));
    return 2;
  }
  await sidecar.listen();
  const admin = await sidecar.openAdmin(await loadAdminToken({ file: tokenFile }));

  const proxy = `http://${sidecar.proxyAddress}:${sidecar.proxyPort}`;
  const url = `https://api.localhost:${origin.port}/v1/hello`;
  process.stderr.write(`
The proxy listens on ${proxy}. Paste, in another terminal:

  direct         curl --cacert ${originCa} ${url}
  by the proxy   curl --cacert ${files.certificateFile} -x ${proxy} ${url}
  another rule   sed s/sallyport-demo/changed/ ${rules} | curl -T - -H 'Content-Type: application/json' -H "Authorization: Bearer $(cat ${tokenFile})" ${admin}/v1/proxy_config

Ctrl-C ends it.

`);
  const { promise, resolve } = Promise.withResolvers<void>();
  process.once('SIGINT', resolve).once('SIGTERM', resolve);
  await promise;
  await sidecar.close();
  return 0;
}
