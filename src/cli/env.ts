// `sallyport env`: for `eval "$(sallyport env)"`, the variables that make a shell's programs use a running proxy. Reads
// the config, the placeholders of the rules and the CA certificate; no secret and no key.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import { codeOf } from '../tls/pem-files.ts';
import { toShellExports } from './client/client-environment.ts';
import { prepareClients, readRules } from './client/client-setup.ts';
import { parseCommandLine } from './command/declaration.ts';
import { envCommand } from './command/sidecar-commands.ts';
import { caFiles, readConfig, stateDirectory } from './settings.ts';

/** Exit code 0, or 2 for a configuration that must be corrected; then nothing is on standard output. */
export async function run(args: string[]): Promise<number> {
  const { values: flags } = parseCommandLine(envCommand, args);
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const { host, port } = config.listen;
  if (port === 0)
    throw new InputError(
      'the port is 0, so it is unknown: give the address of the running proxy as --listen',
    );
  const rules = await readRules(config);
  if (rules === 'invalid') return 2;
  const caPem = await readCertificate(caFiles(config).certificateFile);
  const variables = await prepareClients(
    config,
    { host: reachable(host), port, caPem, rules },
    // Not a temporary directory: the shell that evaluates this lives on.
    { directory: join(stateDirectory(config), 'client'), caller: process.env },
  );
  process.stdout.write(toShellExports(variables));
  return 0;
}

/** An unspecified address can be listened on, but not called. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

async function readCertificate(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const hint = 'start `sallyport proxy` first, or set its --state-dir';
    throw new InputError(`the CA certificate ${file} cannot be read (${codeOf(cause)}): ${hint}`, { cause });
  }
}
