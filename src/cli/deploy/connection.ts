// Where the API of the platform is and who calls it: options over variables.
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { InputError } from '../../base/input-error.ts';
import { Secret } from '../../base/secret.ts';
import type { Values } from '../command/declaration.ts';
import type { connectionOptions } from '../command/deploy-command.ts';
import { codeOf } from '../../tls/pem-files.ts';

export type ApiConnection = {
  /** May have a path, which comes before those of the API. */
  readonly url: URL;
  readonly key: Secret;
  readonly workspace: string | undefined;
};

const DEFAULT_URL = 'http://127.0.0.1:8080';

/** Throws an InputError that names the option or the variable, and never has a part of the key. */
export async function readConnection(
  flags: Values<typeof connectionOptions>,
  env: NodeJS.ProcessEnv,
): Promise<ApiConnection> {
  const url = parseUrl(flags['host-url'], env['SALLYPORT_API_URL']);
  return { url, key: await readKey(flags, env), workspace: parseWorkspace(flags.workspace, env) };
}

/** Whether the key would be sent over a network in plaintext. */
export function isExposed({ url: { protocol, hostname } }: ApiConnection): boolean {
  const isLoopback = /^(?:127(?:\.\d+){3}|\[::1\]|(?:.+\.)?localhost)$/.test(hostname);
  return protocol === 'http:' && !isLoopback;
}

function parseUrl(flag: string | undefined, variable: string | undefined): URL {
  const text = flag ?? (variable || DEFAULT_URL);
  const name = flag === undefined ? 'SALLYPORT_API_URL' : '--host-url';
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new InputError(`${name} must be the URL of a platform, such as ${DEFAULT_URL}`);
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new InputError(`${name} must have neither a user, nor a query, nor a fragment`);
  return url;
}

/** Files that hold a key, whether or not it is the one that is used: they are no part of a source. */
export function namedKeyFiles(
  flags: Values<typeof connectionOptions>,
  env: NodeJS.ProcessEnv,
): readonly string[] {
  return [flags['api-key-file'], env['SALLYPORT_API_KEY_FILE']].filter(
    (file): file is string => file !== undefined && file !== '' && file !== '-',
  );
}

async function readKey(flags: Values<typeof connectionOptions>, env: NodeJS.ProcessEnv): Promise<Secret> {
  if (flags['api-key'] !== undefined) return parseKey(flags['api-key'], '--api-key');
  if (flags['api-key-file'] !== undefined) return readKeyFile(flags['api-key-file'], '--api-key-file');
  const { SALLYPORT_API_KEY: key, SALLYPORT_API_KEY_FILE: file } = env;
  if (key) return parseKey(key, 'SALLYPORT_API_KEY');
  if (file) return readKeyFile(file, 'SALLYPORT_API_KEY_FILE');
  throw new InputError(
    'no API key is given: set SALLYPORT_API_KEY or SALLYPORT_API_KEY_FILE, or give --api-key-file FILE',
  );
}

async function readKeyFile(file: string, name: string): Promise<Secret> {
  try {
    const content = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
    return parseKey(content, `the file of ${name}`);
  } catch (cause) {
    if (cause instanceof InputError) throw cause;
    throw new InputError(`${name}: ${file} cannot be read (${String(codeOf(cause))})`, { cause });
  }
}

function parseKey(text: string, name: string): Secret {
  const key = text.trim();
  // What a header may hold, without spaces: two lines, or a whole JSON document, were meant otherwise.
  if (!/^[\u0021-\u007e]+$/.test(key)) throw new InputError(`${name} must be one API key`);
  return new Secret(key);
}

function parseWorkspace(flag: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  const workspace = flag ?? (env['SALLYPORT_API_WORKSPACE'] || undefined);
  if (workspace === undefined || /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(workspace))
    return workspace;
  throw new InputError(
    `${flag === undefined ? 'SALLYPORT_API_WORKSPACE' : '--workspace'} must be the id of a workspace`,
  );
}
