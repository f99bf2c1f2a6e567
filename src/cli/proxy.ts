// `sallyport proxy`: files, variables and flags in, one running sidecar out. SIGHUP reads the proxy_config again,
// SIGTERM and SIGINT drain.
import { parseArgs } from 'node:util';
import { createFdSink } from '../base/log.ts';
import type { Config } from '../sidecar/config.ts';
import { claimSecrets, handOverSecretVariables } from '../sidecar/secret-environment.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { type WorkspaceSecrets, loadWorkspaceSecrets } from '../sidecar/workspace-secrets.ts';
import { loadOrCreateCertificateAuthority } from '../tls/certificate-authority.ts';
import { formatIssues } from './issue-lines.ts';
import { readDocument } from './document.ts';
import { caFiles, checkEnvironment, configFlags, parseDescriptor, readConfig } from './settings.ts';

/** Exit code 0 after a clean drain, 2 for a configuration that should be mended. */
export async function run(args: string[]): Promise<number> {
  // Nothing is in force yet that could be read again, and the signal's default would end the start.
  process.on('SIGHUP', () => {});
  const { values: flags } = parseArgs({
    args,
    options: { ...configFlags, 'secrets-fd': { type: 'string' } },
  });
  const fd = parseDescriptor(flags['secrets-fd']);
  handOverSecretVariables(fd);
  // Before anything that can fail: what is not claimed stays behind as a file.
  const handed = claimSecrets(process.env);
  const ignored = checkEnvironment(process.env);
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const secrets = loadWorkspaceSecrets(
    { handed, fd, directory: config.secretsDirectory, file: config.secretsFile },
    process.env,
  );
  const { ca } = await loadOrCreateCertificateAuthority(caFiles(config));
  const sidecar = await createSidecar(config, { ca, sink: createFdSink(1) });
  for (const warning of [...ignored, ...secrets.warnings]) sidecar.log.warn(warning);
  const isApplied = await applyFile(sidecar, config, secrets);
  if (!isApplied) {
    await sidecar.close();
    return 2;
  }
  await sidecar.listen();
  sidecar.log.info(
    {
      proxy: proxyUrl(sidecar),
      ca: caFiles(config).certificateFile,
      fingerprint: ca.fingerprintSha256,
      revision: sidecar.revision,
      pid: process.pid,
    },
    'ready',
  );
  return serve(sidecar, config, secrets);
}

async function serve(sidecar: Sidecar, config: Config, loaded: WorkspaceSecrets): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  let secrets = loaded;
  let queue: Promise<unknown> = Promise.resolve();
  process.on('SIGHUP', () => {
    queue = queue.then(async () => {
      try {
        const reloaded = secrets.reload();
        if (await applyFile(sidecar, config, reloaded)) secrets = reloaded;
      } catch (error) {
        sidecar.log.error(
          { reason: error instanceof Error ? error.message : 'unknown' },
          'reload failed; the old configuration stays',
        );
      }
    });
  });
  const stop = (): void => {
    sidecar.log.info('draining');
    sidecar.close().then(
      () => resolve(0),
      () => resolve(1),
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  return promise;
}

function proxyUrl({ proxyAddress, proxyPort }: Sidecar): string {
  return `http://${proxyAddress.includes(':') ? `[${proxyAddress}]` : proxyAddress}:${proxyPort}`;
}

/** Puts the proxy_config file in force. False: it was refused, and reported, and the old one stays. */
async function applyFile(sidecar: Sidecar, config: Config, secrets: WorkspaceSecrets): Promise<boolean> {
  if (config.proxyConfigFile === undefined) return true;
  const applied = sidecar.applyProxyConfig(await readDocument(config.proxyConfigFile), secrets.lookup);
  if (applied.ok) {
    for (const { loc, msg } of applied.warnings)
      sidecar.log.warn({ file: config.proxyConfigFile, at: loc.join('.') }, msg);
    return true;
  }
  process.stderr.write(formatIssues(config.proxyConfigFile, applied.issues));
  sidecar.log.error(
    { file: config.proxyConfigFile, issues: applied.issues },
    'proxy_config refused; the old one stays',
  );
  return false;
}
