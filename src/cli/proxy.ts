// `sallyport proxy`: runs one sidecar with its admin API. SIGHUP, and a change of their files, reads the proxy_config and the secrets
// again; SIGTERM and SIGINT drain.
import { setImmediate } from 'node:timers/promises';
import { InputError, readInput } from '../base/input-error.ts';
import { listenerUrl } from '../base/listen-address.ts';
import { createFdSink } from '../base/log.ts';
import { loadAdminToken, proxyTokenWarnings } from '../sidecar/access-tokens.ts';
import type { Config } from '../sidecar/config.ts';
import { createFileWatch } from '../sidecar/reload/file-watch.ts';
import { type HandedSecrets, secretFileVariables } from '../sidecar/secret-environment.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { bundleFile, publishFile } from '../sidecar/state/published-bundle.ts';
import { secretPart } from '../sidecar/state/state-directory.ts';
import { SealedStateStore } from '../sidecar/state/state-store.ts';
import { codeOf } from '../tls/pem-files.ts';
import { rotationFiles } from '../tls/authority-rotation.ts';
import { parseCommandLine } from './command/declaration.ts';
import { proxyCommand } from './command/sidecar-commands.ts';
import { openAuthority, refreshAuthority, warnOfExpiry } from './process/authority.ts';
import { prepareProcess } from './process/startup.ts';
import { applyFiles, createReloads, type Reloads } from './rules/reload.ts';
import {
  adminTokenSource,
  caFiles,
  namingSettings,
  parseDescriptor,
  prepareState,
  readConfig,
  readSecrets,
  stateDirectory,
  stateKeySource,
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
  using watched = config.watchesFiles ? createFileWatch(watchedPaths(config, process.env)) : undefined;
  const secrets = await readSecrets(config, handed, fd);
  const moved = await prepareState(config);
  const files = caFiles(config);
  const ca = await openAuthority(files);
  const directory = stateDirectory(config);
  const store = new SealedStateStore({
    directory: secretPart(directory),
    key: stateKeySource(config, handed),
  });
  const sink = createFdSink(1);
  const sidecar = await createSidecar(config, { ca, sink, store });
  sidecar.refuseUpstreamsOf(ca.next?.ca);
  for (const warning of [...warnings, ...proxyTokenWarnings(config), ...secrets.warnings])
    sidecar.log.warn(warning);
  if (moved.length > 0) sidecar.log.info({ directory, moved }, 'files moved into secret and public');
  try {
    await sidecar.restore(secrets.lookup);
    const hasFile = config.proxyConfigFile !== undefined;
    if (hasFile && !(await applyFiles(sidecar, config, secrets))) return 2;
    await open(sidecar, config, handed);
    if (config.hasNamespaces) process.on('message', (message, handle) => sidecar.handOver(message, handle));
    using _warnings = warnOfExpiry(sidecar, ca);
    const refresh = (): Promise<void> =>
      refreshAuthority(sidecar, ca, { files, publish: () => publish(sidecar, directory) });
    const parts = { loaded: secrets, files: watched, refresh };
    const serving = serve(sidecar, config, createReloads(sidecar, config, parts));
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

/** What a reload reads. */
function watchedPaths(config: Config, env: NodeJS.ProcessEnv): readonly string[] {
  const { proxyConfigFile, secretsDirectory, secretsFile } = config;
  const named = secretFileVariables(env).map(({ value }) => value);
  const { scheduleFile } = rotationFiles(caFiles(config));
  const paths = [proxyConfigFile, secretsDirectory, secretsFile, scheduleFile, ...named];
  return paths.filter((path) => path !== undefined);
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
  const metrics = config.metrics.listen === 'off' ? undefined : await openMetrics(sidecar);
  sidecar.log.info(
    {
      proxy: listenerUrl({ address: sidecar.proxyAddress, port: sidecar.proxyPort }),
      ...(admin && { admin, admin_token: 'file' in source ? source.file : source.from }),
      ...(metrics && { metrics }),
      ca: caFiles(config).certificateFile,
      fingerprint: sidecar.fingerprint,
      revision: sidecar.revision,
      pid: process.pid,
    },
    'ready',
  );
}

/** Loaded on demand: few proxies have metrics. */
async function openMetrics(sidecar: Sidecar): Promise<string> {
  const { readVersion } = await import('./command/version.ts');
  return sidecar.openMetrics(await readVersion());
}

/** Until a signal ends it. */
async function serve(sidecar: Sidecar, config: Config, reloads: Reloads): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  process.on('SIGHUP', () => void reloads.run());
  reloads.watch();
  const end = (): void => {
    // From here on a further signal ends the process at once.
    for (const signal of ENDING) process.off(signal, stop);
    resolve(0);
  };
  let isEnding = false;
  const stop = (): void => {
    // Who asks twice does not wait for load balancers.
    if (isEnding) return end();
    isEnding = true;
    sidecar.log.info('draining');
    void sidecar.announceEnd().then(end);
  };
  for (const signal of ENDING) process.on(signal, stop);
  // Who hands over listeners also pushes the rules: without the parent this process would serve old ones.
  if (config.hasNamespaces) process.once('disconnect', stop);
  if (config.hasNamespaces && !process.connected) stop();
  return promise;
}

const ENDING = ['SIGTERM', 'SIGINT'] as const;
