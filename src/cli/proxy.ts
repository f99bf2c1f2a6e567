// `sallyport proxy`: files, variables and flags in, one running sidecar with its admin API out. SIGHUP reads the
// proxy_config and the secrets again, SIGTERM and SIGINT drain.
import { parseArgs } from 'node:util';
import { readInput } from '../base/input-error.ts';
import { listenerUrl } from '../base/listen-address.ts';
import { createFdSink } from '../base/log.ts';
import { loadAdminToken } from '../sidecar/admin-token.ts';
import type { Config } from '../sidecar/config.ts';
import type { Applied } from '../sidecar/sandboxes/sandboxes.ts';
import { type HandedSecrets, claimSecrets, handOverSecretVariables } from '../sidecar/secret-environment.ts';
import { tokenWarnings } from '../sidecar/secret-files.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { createStateStore } from '../sidecar/state/state-store.ts';
import { type WorkspaceSecrets, loadWorkspaceSecrets } from '../sidecar/sandboxes/workspace-secrets.ts';
import { loadOrCreateCertificateAuthority } from '../tls/certificate-authority.ts';
import { preventCoreDumps } from './process/core-dumps.ts';
import { readDocument } from './document.ts';
import { formatIssues } from './issue-lines.ts';
import { refuseRuntimeSwitches } from './process/runtime-switches.ts';
import {
  adminTokenSource,
  caFiles,
  environmentWarnings,
  configFlags,
  parseDescriptor,
  readConfig,
  stateDirectory,
  stateKeySource,
} from './settings.ts';

/** Exit code 0 after a clean drain, 2 for a configuration that should be mended. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  // The signal's default would end the start. What changed since the file was read is read once more behind it.
  let isAskedAgain = false;
  const ask = (): void => void (isAskedAgain = true);
  process.on('SIGHUP', ask);
  const { values: flags } = parseArgs({
    args,
    options: { ...configFlags, 'secrets-fd': { type: 'string' } },
  });
  const fd = parseDescriptor(flags['secrets-fd']);
  handOverSecretVariables(fd);
  // Before anything that can fail: what is not claimed stays behind as a file.
  const handed = claimSecrets(process.env);
  const cores = preventCoreDumps();
  const ignored = environmentWarnings(process.env);
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const { secretsDirectory, secretsFile } = config;
  const secrets = await readInput(() =>
    loadWorkspaceSecrets({ handed, fd, directory: secretsDirectory, file: secretsFile }, process.env),
  );
  const { ca } = await readInput(() => loadOrCreateCertificateAuthority(caFiles(config)));
  const store = createStateStore({ directory: stateDirectory(config), key: stateKeySource(config, handed) });
  const sidecar = await createSidecar(config, { ca, sink: createFdSink(1), store });
  for (const warning of [...cores.warnings, ...ignored, ...tokenWarnings(config), ...secrets.warnings])
    sidecar.log.warn(warning);
  try {
    await sidecar.restore(secrets.lookup);
    if (config.proxyConfigFile !== undefined && !(await apply(sidecar, config, secrets))) return 2;
    await open(sidecar, config, handed);
    const serving = serve(sidecar, config, secrets);
    process.off('SIGHUP', ask);
    if (isAskedAgain) process.emit('SIGHUP');
    return await serving;
  } finally {
    await sidecar.close();
  }
}

/** Opens the doors and says where they are. */
async function open(sidecar: Sidecar, config: Config, handed: HandedSecrets): Promise<void> {
  const source = adminTokenSource(config, handed);
  const isAdminOn = config.admin.listen !== 'off';
  const token = isAdminOn ? await readInput(() => loadAdminToken(source)) : undefined;
  await sidecar.listen();
  const admin = token && (await sidecar.openAdmin(token));
  const { certificateFile } = caFiles(config);
  sidecar.log.info(
    {
      proxy: listenerUrl({ address: sidecar.proxyAddress, port: sidecar.proxyPort }),
      ...(admin && { admin, admin_token: 'file' in source ? source.file : source.from }),
      ca: certificateFile,
      fingerprint: sidecar.fingerprint,
      revision: sidecar.revision,
      pid: process.pid,
    },
    'ready',
  );
}

async function serve(sidecar: Sidecar, config: Config, loaded: WorkspaceSecrets): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  let secrets = loaded;
  let queue: Promise<unknown> = Promise.resolve();
  process.on('SIGHUP', () => {
    queue = queue.then(async () => {
      try {
        const reloaded = secrets.reload();
        if (await apply(sidecar, config, reloaded)) secrets = reloaded;
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
    resolve(0);
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  return promise;
}

/** Puts the file in force, or without one what is in force, with the secrets of now. False: refused, and reported. */
async function apply(sidecar: Sidecar, config: Config, secrets: WorkspaceSecrets): Promise<boolean> {
  const { proxyConfigFile: file } = config;
  const applied: Applied =
    file === undefined
      ? sidecar.reapply(secrets.lookup)
      : sidecar.applyProxyConfig(await readDocument(file), secrets.lookup);
  if (applied.ok) {
    for (const { loc, msg } of applied.warnings) sidecar.log.warn({ file, at: loc.join('.') }, msg);
    return true;
  }
  process.stderr.write(formatIssues(file ?? 'proxy_config', applied.issues));
  sidecar.log.error({ file, issues: applied.issues }, 'proxy_config refused; the old one stays');
  return false;
}
