// `sallyport env`: for `eval "$(sallyport env)"`, the variables that send a shell's programs through a proxy which runs
// already. Reads the config, the rules' placeholders and the CA certificate; no secret and no key.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { InputError } from '../base/input-error.ts';
import { toShellExports } from './client/client-environment.ts';
import { prepareClients, readRules } from './client/client-setup.ts';
import { caFiles, configFlags, readConfig, stateDirectory } from './settings.ts';

/** Exit code 0, or 2 for a configuration that should be mended; then nothing is on standard output. */
export async function run(args: string[]): Promise<number> {
  const { config: file, 'proxy-config': proxyConfig, listen, 'state-dir': stateDir } = configFlags;
  const options = { config: file, 'proxy-config': proxyConfig, listen, 'state-dir': stateDir };
  const { values: flags } = parseArgs({ args, options });
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const { host, port } = config.listen;
  if (port === 0)
    throw new InputError('port 0 may be any: give the address of the running proxy as --listen');
  const rules = await readRules(config);
  if (rules === 'refused') return 2;
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

/** Every interface is an address to listen on, not one to call. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

async function readCertificate(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new InputError(
      `the CA certificate ${file} cannot be read (${code}): start \`sallyport proxy\` first, or give its --state-dir`,
      { cause: error },
    );
  }
}
