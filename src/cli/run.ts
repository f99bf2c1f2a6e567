// `sallyport run -- CMD`: a proxy for one command, with a CA in memory. The command gets the proxy's address, the CA
// certificates and the placeholders of the rules, and no secret; its output is unchanged.
import { openSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import { proxyTokenWarnings } from '../sidecar/access-tokens.ts';
import type { Config } from '../sidecar/config.ts';
import { createSidecar } from '../sidecar/sidecar.ts';
import { createCertificateAuthority } from '../tls/certificate-authority.ts';
import { codeOf } from '../tls/pem-files.ts';
import { createSignalRelay, runCommand } from './client/child-command.ts';
import { withoutProxySettings } from './client/client-environment.ts';
import { type Rules, prepareClients, readRules } from './client/client-setup.ts';
import { createCommandLog } from './client/command-log.ts';
import { programsWithout } from './client/programs.ts';
import { missing, parseCommandLine, type Values } from './command/declaration.ts';
import { runCommandDeclaration } from './command/sidecar-commands.ts';
import { oldNodeWarning } from './process/old-node.ts';
import { prepareProcess } from './process/startup.ts';
import { namingSettings, parseDescriptor, readConfig, readSecrets, reportApplied } from './settings.ts';

/** The command's exit code (see child-command.ts), or 2 for a configuration that must be corrected. */
export async function run(args: string[]): Promise<number> {
  const { values: flags, operands: command } = parseCommandLine(runCommandDeclaration, args);
  // Empty: as in `-- "$CMD"` where the variable is not set.
  if (!command[0]) throw missing(runCommandDeclaration, 'command');
  programsWithout(flags.without);
  const fd = parseDescriptor(flags['secrets-fd']);
  const startup = prepareProcess(fd, ', or set it for the command only: -- env NODE_OPTIONS=... CMD');
  const signals = createSignalRelay();
  const configured = await readConfig(flags, { ...process.env, SALLYPORT_LISTEN: '127.0.0.1:0' });
  if (!configured) return 2;
  const config = forOneCommand(configured, flags.log !== undefined);
  return namingSettings(config, () => runBehindProxy(config, { ...startup, signals, command, flags, fd }));
}

type Start = Awaited<ReturnType<typeof prepareProcess>> & {
  readonly signals: ReturnType<typeof createSignalRelay>;
  readonly command: readonly string[];
  readonly flags: Values<typeof runCommandDeclaration.options>;
  /** Of --secrets-fd. */
  readonly fd: number | undefined;
};

async function runBehindProxy(config: Config, start: Start): Promise<number> {
  const { handed, cores, signals, command, flags, fd } = start;
  const rules = await readRules(config);
  if (rules === 'invalid') return 2;
  const secrets = await readSecrets(config, handed, fd);
  const ca = createCertificateAuthority();
  const sink = createCommandLog(openLog(flags.log));
  const sidecar = await createSidecar(config, { ca, sink });
  const directory = await createDirectory();
  let ended: Awaited<ReturnType<typeof runCommand>>;
  try {
    for (const warning of [...start.warnings, ...proxyTokenWarnings(config), ...secrets.warnings])
      sidecar.log.warn(warning);
    const applied = rules && sidecar.applyProxyConfig(rules.document, secrets.lookup);
    if (applied && !(await reportApplied(sidecar, applied, config.proxyConfigFile))) return 2;
    await sidecar.listen();
    const caller = withoutProxySettings(process.env);
    const variables = await prepareClients(
      config,
      { host: sidecar.proxyAddress, port: sidecar.proxyPort, caPem: ca.certificatePem, rules },
      { directory, caller, without: flags.without },
    );
    const env = { ...caller, ...variables };
    const warning = await oldNodeWarning(command[0] ?? '', env);
    if (warning !== undefined) process.stderr.write(`sallyport: ${warning}\n`);
    sidecar.prepareUpstreams();
    ended = await runCommand(command, env, signals, cores);
  } finally {
    await sidecar.close();
    await rm(directory, { recursive: true, force: true });
  }
  // A tunnel counts when it ends.
  const { code, hasStarted } = ended;
  if (hasStarted && sidecar.endedCount === 0 && hasEntries(rules))
    process.stderr.write(`sallyport: ${NOTHING_PASSED}\n`);
  return code;
}

const NOTHING_PASSED =
  'no request reached the proxy, so nothing was injected: if the command made requests, it ignores HTTPS_PROXY';

/** Whether a header would have been injected into some request. */
function hasEntries(rules: Rules | undefined): boolean {
  const entries = rules ? [...rules.authored.rules, ...rules.authored.callbacks] : [];
  return entries.some(({ enabled }) => enabled);
}

// Processes that the command left running may still be connected; unlike a service's supervisor, nothing waits for them.
const MAX_DRAIN_MS = 1_000;

/** For any client of the loopback port. Unless a log is asked for, the log has warnings and errors only. */
function forOneCommand(config: Config, isLogged: boolean): Config {
  const { timeouts, logLevel } = config;
  return {
    ...config,
    allowClients: undefined,
    logLevel: isLogged || logLevel === 'silent' || logLevel === 'error' ? logLevel : 'warn',
    isRecorded: isLogged && config.isRecorded,
    areChangesRecorded: isLogged && config.areChangesRecorded,
    timeouts: { ...timeouts, drainMs: Math.min(timeouts.drainMs, MAX_DRAIN_MS) },
  };
}

/** It holds certificates and settings of clients, and helpers of a client may be other users. */
async function createDirectory(): Promise<string> {
  try {
    const directory = await mkdtemp(join(tmpdir(), 'sallyport-run-'));
    await chmod(directory, 0o755);
    return directory;
  } catch (cause) {
    const hint = 'set TMPDIR to a directory that you can write to';
    throw new InputError(`no directory can be created in ${tmpdir()} (${codeOf(cause)}): ${hint}`, { cause });
  }
}

/** `-` means standard error. */
function openLog(file: string | undefined): number | undefined {
  if (file === undefined) return undefined;
  try {
    return file === '-' ? 2 : openSync(file, 'a', 0o600);
  } catch (cause) {
    const hint = 'name a file that you can write to, or - for standard error';
    throw new InputError(`--log: ${file} cannot be opened (${codeOf(cause)}): ${hint}`, { cause });
  }
}
