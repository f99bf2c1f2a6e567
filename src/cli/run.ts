// `sallyport run -- CMD`: a proxy for one command, with a CA that lives in memory. The command gets the proxy's address,
// what to trust and the rules' placeholders, and no secret; its output is its own.
import { openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { InputError, readInput } from '../base/input-error.ts';
import { createFdSink } from '../base/log.ts';
import type { Config } from '../sidecar/config.ts';
import { claimSecrets, handOverSecretVariables } from '../sidecar/secret-environment.ts';
import { tokenWarnings } from '../sidecar/secret-files.ts';
import { type Sidecar, createSidecar } from '../sidecar/sidecar.ts';
import { type WorkspaceSecrets, loadWorkspaceSecrets } from '../sidecar/sandboxes/workspace-secrets.ts';
import { createCertificateAuthority } from '../tls/certificate-authority.ts';
import { createSignalRelay, runCommand } from './client/child-command.ts';
import { withoutProxySettings } from './client/client-environment.ts';
import { type Rules, prepareClients, readRules } from './client/client-setup.ts';
import { preventCoreDumps } from './process/core-dumps.ts';
import { formatIssues } from './issue-lines.ts';
import { oldNodeWarning } from './process/old-node.ts';
import { refuseRuntimeSwitches } from './process/runtime-switches.ts';
import { environmentWarnings, configFlags, parseDescriptor, readConfig } from './settings.ts';

/** The command's exit code (see child-command.ts), or 2 for a configuration that should be mended. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env, ', or give it to the command alone: -- env NODE_OPTIONS=... CMD');
  const { flags, command } = parseCommandLine(args);
  const fd = parseDescriptor(flags['secrets-fd']);
  handOverSecretVariables(fd);
  // Before anything that can fail: what is not claimed stays behind as a file.
  const handed = claimSecrets(process.env);
  const cores = preventCoreDumps();
  const signals = createSignalRelay();
  const ignored = environmentWarnings(process.env);
  const settled = await readConfig(flags, { ...process.env, SALLYPORT_LISTEN: '127.0.0.1:0' });
  if (!settled) return 2;
  const config = forOneCommand(settled, flags.log !== undefined);
  const rules = await readRules(config);
  if (rules === 'refused') return 2;
  const { secretsDirectory, secretsFile } = config;
  const secrets = await readInput(() =>
    loadWorkspaceSecrets({ handed, fd, directory: secretsDirectory, file: secretsFile }, process.env),
  );
  const ca = createCertificateAuthority();
  const sidecar = await createSidecar(config, { ca, sink: createFdSink(openLog(flags.log)) });
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-run-'));
  try {
    for (const warning of [...cores.warnings, ...ignored, ...tokenWarnings(config), ...secrets.warnings])
      sidecar.log.warn(warning);
    if (!applyRules(sidecar, config, { rules, secrets })) return 2;
    await sidecar.listen();
    const caller = withoutProxySettings(process.env);
    const variables = await prepareClients(
      config,
      { host: sidecar.proxyAddress, port: sidecar.proxyPort, caPem: ca.certificatePem, rules },
      { directory, caller },
    );
    const env = { ...caller, ...variables };
    const warning = await oldNodeWarning(command[0] ?? '', env);
    if (warning !== undefined) process.stderr.write(`sallyport: ${warning}\n`);
    return await runCommand(command, { env, signals, cores });
  } finally {
    await sidecar.close();
    await rm(directory, { recursive: true, force: true });
  }
}

const { listen: _, 'admin-listen': __, ...ownFlags } = configFlags;
const flagOptions = { ...ownFlags, 'secrets-fd': { type: 'string' }, log: { type: 'string' } } as const;

type Flags = Partial<Record<keyof typeof flagOptions, string>>;

function parseCommandLine(args: string[]): { flags: Flags; command: readonly string[] } {
  const end = args.indexOf('--');
  const command = end === -1 ? [] : args.slice(end + 1);
  const { values } = parseArgs({ args: end === -1 ? args : args.slice(0, end), options: flagOptions });
  if (command.length === 0)
    throw new InputError('a command is missing: sallyport run [OPTIONS] -- CMD ARGS...');
  return { flags: values, command };
}

// What the command left running may still be talking; nobody waits for it as a supervisor does for a service.
const MAX_DRAIN_MS = 1_000;

/** On loopback, for whoever has the port; silent but for errors, since the terminal is the command's. */
function forOneCommand(config: Config, isLogged: boolean): Config {
  const { timeouts, logLevel } = config;
  return {
    ...config,
    allowClients: undefined,
    logLevel: isLogged || logLevel === 'silent' ? logLevel : 'error',
    isRecorded: isLogged && config.isRecorded,
    areChangesRecorded: isLogged && config.areChangesRecorded,
    timeouts: { ...timeouts, drainMs: Math.min(timeouts.drainMs, MAX_DRAIN_MS) },
  };
}

/** `-` and no file at all are standard error. */
function openLog(file: string | undefined): number {
  return file === undefined || file === '-' ? 2 : openSync(file, 'a', 0o600);
}

function applyRules(
  sidecar: Sidecar,
  config: Config,
  { rules, secrets }: { readonly rules: Rules | undefined; readonly secrets: WorkspaceSecrets },
): boolean {
  if (!rules) return true;
  const applied = sidecar.applyProxyConfig(rules.document, secrets.lookup);
  if (!applied.ok) {
    process.stderr.write(formatIssues(config.proxyConfigFile ?? '', applied.issues));
    return false;
  }
  for (const { loc, msg } of applied.warnings)
    sidecar.log.warn({ file: config.proxyConfigFile, at: loc.join('.') }, msg);
  return true;
}
