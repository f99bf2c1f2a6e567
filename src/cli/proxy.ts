// `sallyport proxy`: files, variables and flags in, one running sidecar out. SIGHUP reads the proxy_config again,
// SIGTERM and SIGINT drain.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createFdSink } from '../base/log.ts';
import { type Config, parseConfig } from '../sidecar/config.ts';
import { claimSecrets, handOverSecretVariables } from '../sidecar/secret-environment.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { type WorkspaceSecrets, loadWorkspaceSecrets } from '../sidecar/workspace-secrets.ts';
import { loadOrCreateCertificateAuthority } from '../tls/certificate-authority.ts';
import { formatIssues } from './issue-lines.ts';
import { InputError, readDocument } from './document.ts';

/** Exit code 0 after a clean drain, 2 for a configuration that should be mended. */
export async function run(args: string[]): Promise<number> {
  const { values: flags } = parseArgs({ args, options: flagOptions });
  const fd = flags['secrets-fd'] === undefined ? undefined : parseDescriptor(flags['secrets-fd']);
  handOverSecretVariables(fd);
  // Before anything that can fail: what is not claimed stays behind as a file.
  const handed = claimSecrets(process.env);
  const ignored = checkEnvironment(process.env);
  const env = { ...process.env, ...flagVariables(flags) };
  const document = flags.config === undefined ? {} : await readDocument(flags.config);
  const parsed = parseConfig(document, env);
  if (!parsed.ok) {
    process.stderr.write(formatIssues(flags.config ?? 'configuration', parsed.issues));
    return 2;
  }
  const config = parsed.value;
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

const flagOptions = {
  config: { type: 'string' },
  'proxy-config': { type: 'string' },
  listen: { type: 'string' },
  'state-dir': { type: 'string' },
  'secrets-dir': { type: 'string' },
  'secrets-file': { type: 'string' },
  'secrets-fd': { type: 'string' },
} as const;

function flagVariables(flags: Partial<Record<keyof typeof flagOptions, string>>): NodeJS.ProcessEnv {
  return {
    ...(flags['proxy-config'] === undefined ? {} : { SALLYPORT_PROXY_CONFIG: flags['proxy-config'] }),
    ...(flags.listen === undefined ? {} : { SALLYPORT_LISTEN: flags.listen }),
    ...(flags['state-dir'] === undefined ? {} : { SALLYPORT_STATE_DIR: flags['state-dir'] }),
    ...(flags['secrets-dir'] === undefined ? {} : { SALLYPORT_SECRETS_DIR: flags['secrets-dir'] }),
    ...(flags['secrets-file'] === undefined ? {} : { SALLYPORT_SECRETS_FILE: flags['secrets-file'] }),
  };
}

/** The CA pair: as configured, else in the state directory. */
export function caFiles(config: Pick<Config, 'ca' | 'stateDir'>): {
  certificateFile: string;
  keyFile: string;
} {
  if (config.ca) return config.ca;
  const directory =
    config.stateDir ?? join(process.env['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state'), 'sallyport');
  return { certificateFile: join(directory, 'ca.pem'), keyFile: join(directory, 'ca.key') };
}

function parseDescriptor(text: string): number {
  const fd = Number(text);
  if (!Number.isInteger(fd) || fd < 3) throw new InputError('--secrets-fd should be a descriptor above 2');
  return fd;
}

/**
 * Switches of Node that would undo what the proxy promises, whoever set them: the dangerous one ends the start, the
 * others have no effect here, and the answer says so.
 */
function checkEnvironment(env: NodeJS.ProcessEnv): string[] {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new InputError(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 would trust any host: unset it, and name your CA in SALLYPORT_UPSTREAM_CA',
    );
  }
  const set = withoutEffect.filter(
    ({ name }) => env[name] !== undefined || env[name.toLowerCase()] !== undefined,
  );
  return set.map(({ name, instead }) => `${name} has no effect on the proxy itself: ${instead}`);
}

const withoutEffect: readonly { readonly name: string; readonly instead: string }[] = [
  { name: 'NODE_EXTRA_CA_CERTS', instead: 'name the file in SALLYPORT_UPSTREAM_CA' },
  { name: 'HTTPS_PROXY', instead: 'connections to hosts are direct' },
  { name: 'HTTP_PROXY', instead: 'connections to hosts are direct' },
  { name: 'ALL_PROXY', instead: 'connections to hosts are direct' },
];
