// `sallyport proxy`: runs one sidecar with its admin API. SIGHUP reads the proxy_config and the secrets again, SIGTERM and
// SIGINT drain.
import { dirname } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { InputError, readInput } from '../base/input-error.ts';
import { listenerUrl } from '../base/listen-address.ts';
import { createFdSink } from '../base/log.ts';
import { WorkQueue } from '../base/work-queue.ts';
import { loadAdminToken, proxyTokenWarnings } from '../sidecar/access-tokens.ts';
import type { Config } from '../sidecar/config.ts';
import type { WorkspaceSecrets } from '../sidecar/sandboxes/workspace-secrets.ts';
import type { HandedSecrets } from '../sidecar/secret-environment.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { bundleFile, publishFile } from '../sidecar/state/published-bundle.ts';
import { secretPart } from '../sidecar/state/state-directory.ts';
import { SealedStateStore } from '../sidecar/state/state-store.ts';
import { loadOrCreateCertificateAuthority } from '../tls/certificate-authority.ts';
import { codeOf } from '../tls/pem-files.ts';
import { parseCommandLine } from './command/declaration.ts';
import { proxyCommand } from './command/sidecar-commands.ts';
import { readDocument } from './document.ts';
import { prepareProcess } from './process/startup.ts';
import {
  adminTokenSource,
  caFiles,
  namingSettings,
  parseDescriptor,
  prepareState,
  readConfig,
  readSecrets,
  reportApplied,
  stateDirectory,
  stateKeySource,
  writingTo,
} from './settings.ts';

/** Exit code 0 after a clean drain, 2 for a configuration that must be corrected. */
export async function run(args: string[]): Promise<number> {
  const early = holdReloads();
  const { values: flags } = parseCommandLine(proxyCommand, args);
  const fd = parseDescriptor(flags['secrets-fd']);
  const prepared = prepareProcess(fd);
  const config = await readConfig(flags, process.env);
  if (config?.hasNamespaces && !process.connected)
    throw new InputError(
      'sandboxes.namespaces (SALLYPORT_SANDBOXES_NAMESPACES) needs a parent process that hands over listeners: start this one with an IPC channel, or turn it off',
    );
  return config ? namingSettings(config, () => runProxy(config, { ...prepared, fd, early })) : 2;
}

type Start = Awaited<ReturnType<typeof prepareProcess>> & {
  /** Of --secrets-fd. */
  readonly fd: number | undefined;
  readonly early: ReturnType<typeof holdReloads>;
};

async function runProxy(config: Config, { handed, warnings, fd, early }: Start): Promise<number> {
  const secrets = await readSecrets(config, handed, fd);
  const moved = await prepareState(config);
  const files = caFiles(config);
  const { ca } = await writingTo(dirname(files.keyFile), () => loadOrCreateCertificateAuthority(files));
  const directory = stateDirectory(config);
  const store = new SealedStateStore({
    directory: secretPart(directory),
    key: stateKeySource(config, handed),
  });
  const sink = createFdSink(1);
  const sidecar = await createSidecar(config, { ca, sink, store });
  for (const warning of [...warnings, ...proxyTokenWarnings(config), ...secrets.warnings])
    sidecar.log.warn(warning);
  if (moved.length > 0) sidecar.log.info({ directory, moved }, 'files moved into secret and public');
  try {
    await sidecar.restore(secrets.lookup);
    const hasFile = config.proxyConfigFile !== undefined;
    if (hasFile && !(await apply(sidecar, config, secrets, 'proxy_config rejected'))) return 2;
    await open(sidecar, config, handed);
    if (config.hasNamespaces) process.on('message', (message, handle) => sidecar.handOver(message, handle));
    const serving = serve(sidecar, config, secrets);
    const isReloadRequested = early.end();
    // Whoever started the process waits for this line, and may send a signal at once.
    sink.flush();
    sidecar.prepareUpstreams();
    if (isReloadRequested) process.emit('SIGHUP');
    const published = publish(sidecar, directory);
    const code = await serving;
    await published;
    return code;
  } finally {
    await sidecar.close();
  }
}

/** By default SIGHUP would end the start. What changed since the files were read is read again afterwards. */
function holdReloads() {
  let isRequested = false;
  const onSignal = (): void => void (isRequested = true);
  process.on('SIGHUP', onSignal);
  return {
    /** Whether the signal came. */
    end(): boolean {
      process.off('SIGHUP', onSignal);
      return isRequested;
    },
  };
}

/** Writes the CA bundle for `sallyport env`, in a later turn: reading the roots of the system takes 15 ms. */
async function publish(sidecar: Sidecar, directory: string): Promise<void> {
  const file = bundleFile(directory);
  await setImmediate();
  try {
    await publishFile(file, sidecar.bundlePem);
  } catch (error) {
    const code = codeOf(error);
    // Roots that cannot be read are reported by prepareUpstreams().
    if (code !== undefined)
      sidecar.log.warn({ file, error: code }, 'the CA bundle cannot be written: sallyport env needs --write');
  }
}

/** Opens the proxy and the admin API, and logs their addresses. */
async function open(sidecar: Sidecar, config: Config, handed: HandedSecrets): Promise<void> {
  const source = adminTokenSource(config, handed);
  const isAdminOn = config.admin.listen !== 'off';
  const token = isAdminOn ? await readInput(() => loadAdminToken(source)) : undefined;
  await sidecar.listen();
  const admin = token && (await sidecar.openAdmin(token));
  sidecar.log.info(
    {
      proxy: listenerUrl({ address: sidecar.proxyAddress, port: sidecar.proxyPort }),
      ...(admin && { admin, admin_token: 'file' in source ? source.file : source.from }),
      ca: caFiles(config).certificateFile,
      fingerprint: sidecar.fingerprint,
      revision: sidecar.revision,
      pid: process.pid,
    },
    'ready',
  );
}

async function serve(sidecar: Sidecar, config: Config, loaded: WorkspaceSecrets): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const reloads = new WorkQueue();
  let secrets = loaded;
  const reload = async (): Promise<void> => {
    try {
      const reloaded = secrets.reload();
      if (await apply(sidecar, config, reloaded, `proxy_config rejected; ${UNCHANGED}`)) secrets = reloaded;
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown';
      sidecar.log.error({ reason }, `reload failed; ${UNCHANGED}`);
    }
  };
  process.on('SIGHUP', () => void reloads.run(reload));
  const stop = (): void => {
    sidecar.log.info('draining');
    resolve(0);
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // Who hands over listeners also pushes the rules: without the parent this process would serve old ones.
  if (config.hasNamespaces) process.once('disconnect', stop);
  if (config.hasNamespaces && !process.connected) stop();
  return promise;
}

const UNCHANGED = 'the current configuration stays active';

/** Applies the file, or without one the active document, with the current secrets. False: rejected, and reported. */
async function apply(
  sidecar: Sidecar,
  { proxyConfigFile: file }: Config,
  { lookup }: WorkspaceSecrets,
  rejection: string,
): Promise<boolean> {
  const applied =
    file === undefined ? sidecar.reapply(lookup) : sidecar.applyProxyConfig(await readDocument(file), lookup);
  if (!applied.ok) sidecar.log.error({ file, issues: applied.issues }, rejection);
  return reportApplied(sidecar, applied, file);
}
