// `sallyport env`: for `eval "$(sallyport env)"`, the variables that make a shell's programs use a running proxy. Reads
// the config, the placeholders of the rules and the public part of the state directory; no secret and no key. With --proxy
// the certificate comes from the proxy, for another user and in another container. Writes files only with --write.
import { resolve } from 'node:path';
import { InputError, readInput } from '../base/input-error.ts';
import { type ListenAddress, toReachable } from '../base/listen-address.ts';
import { isSandboxId } from '../base/sandbox-id.ts';
import { readTokenFile } from '../sidecar/access-tokens.ts';
import type { Config } from '../sidecar/config.ts';
import { readCaFile, readNextCertificate } from './ca/certificate-file.ts';
import { type ProxyLogin, prepareClients, readRules } from './client/client-setup.ts';
import { programsWithout } from './client/programs.ts';
import { fetchCertificate, parseProxyUrl } from './client/running-proxy.ts';
import { formatVariables, parseVariableFormat } from './client/variable-format.ts';
import { parseCommandLine } from './command/declaration.ts';
import { envCommand } from './command/sidecar-commands.ts';
import { caFiles, readConfig } from './settings.ts';

/** Exit code 0, or 2 for a configuration that must be corrected; then nothing is on standard output. */
export async function run(args: string[]): Promise<number> {
  const { values } = parseCommandLine(envCommand, args);
  const { proxy, sandbox, 'token-file': tokenFile, write, format: word, ...flags } = values;
  programsWithout(flags.without);
  const format = parseVariableFormat(word);
  const at = proxy === undefined ? undefined : parseProxyUrl(proxy);
  if (at && write === undefined)
    throw new InputError('--proxy needs --write DIR, a directory of yours for the CA files');
  const login = await readLogin({ sandbox, tokenFile });
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const address = at ?? listenAddress(config);
  const rules = await readRules(config);
  if (rules === 'invalid') return 2;
  const trusted = at ? { caPem: await fetchCertificate(at) } : await readTrusted(config);
  // The token of the config is for those who may read its file; a client of --proxy has its own, or none.
  const presented = login ?? (at && { user: undefined, token: undefined });
  const variables = await prepareClients(
    config,
    { ...address, ...trusted, rules, ...(presented && { login: presented }) },
    {
      directory: write === undefined ? undefined : resolve(write),
      caller: process.env,
      without: flags.without,
    },
  );
  print(formatVariables(variables, format), format);
  return 0;
}

/** In a rotation clients must trust both CAs before the next one signs. */
async function readTrusted(config: Config): Promise<{ caPem: string; nextPem: string }> {
  const { certificateFile: file } = caFiles(config);
  return { caPem: await readCaFile(file, NO_CERTIFICATE), nextPem: await readNextCertificate(file) };
}

function print({ text: lines, omitted }: ReturnType<typeof formatVariables>, format: string): void {
  for (const name of omitted)
    process.stderr.write(`sallyport: ${name} is left out: the format ${format} cannot hold its value\n`);
  process.stdout.write(lines);
}

async function readLogin(given: {
  readonly sandbox: string | undefined;
  readonly tokenFile: string | undefined;
}): Promise<ProxyLogin | undefined> {
  const { sandbox, tokenFile } = given;
  if (sandbox !== undefined && !isSandboxId(sandbox))
    throw new InputError(
      '--sandbox must be the id of a sandbox: lower-case letters, digits and inner hyphens',
    );
  if (tokenFile === undefined) {
    if (sandbox === undefined) return undefined;
    throw new InputError('--sandbox needs --token-file FILE: the token selects the sandbox');
  }
  return { user: sandbox, token: await readInput(() => readTokenFile(tokenFile)) };
}

function listenAddress({ listen }: Config): ListenAddress {
  if (listen.port === 0)
    throw new InputError(
      'the port is 0, so it is unknown: give the address of the running proxy as --listen',
    );
  return toReachable(listen);
}

const NO_CERTIFICATE =
  'start `sallyport proxy` first, set its --state-dir, or as another user give --proxy URL --write DIR';
