// Asks the admin API of a running proxy, for the commands that inspect one. The token is read from where the proxy keeps it.
import { readFile, stat } from 'node:fs/promises';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { dirname } from 'node:path';
import { InputError } from '../base/input-error.ts';
import { formatAddress } from '../base/listen-address.ts';
import type { Config } from '../sidecar/config.ts';
import { codeOf } from '../tls/pem-files.ts';
import { listenersAt } from './process/listener-owner.ts';
import { adminTokenFile } from './settings.ts';

export type AdminReply = { readonly status: number; readonly document: unknown };

/** Why there is no reply, as a sentence that says what to do. */
export class AdminUnreachable extends Error {
  override readonly name = 'AdminUnreachable';
}

/**
 * GET `path`. Without `needsToken` no token is read. Throws AdminUnreachable, or an InputError about the token. The token is
 * not sent to a program of another user than that of its file: while the proxy does not run, the sandbox may listen there.
 */
export async function askAdmin(
  config: Config,
  path: string,
  need: { readonly needsToken: boolean },
): Promise<AdminReply> {
  const response = await openAdmin(config, path, need);
  try {
    return await readReply(response);
  } catch (error) {
    throw unreachable(destination(config).text, codeOf(error));
  }
}

/** The same, without the body, which may come for as long as the proxy runs. */
export async function openAdmin(
  config: Config,
  path: string,
  { needsToken }: { readonly needsToken: boolean },
): Promise<IncomingMessage> {
  const to = destination(config);
  const token = needsToken ? await readToken(config, to) : undefined;
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  // An agent of its own: the global one would use HTTP_PROXY, and the API refuses requests through a proxy.
  const asked = requestHttp({ ...to.options, path, headers, agent: false, timeout: TIMEOUT_MS }, resolve);
  asked.on('timeout', () => asked.destroy(new Error('timeout')));
  asked.on('error', (error) => reject(unreachable(to.text, codeOf(error) ?? 'no response in time')));
  asked.end();
  return promise;
}

/** The rest of a response. It rejects if that does not come. */
export async function readReply(response: IncomingMessage): Promise<AdminReply> {
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  const document = parseReply(Buffer.concat(chunks).toString('utf8'));
  return { status: response.statusCode ?? 0, document };
}

/** Without a byte, also within a response. */
const TIMEOUT_MS = 5_000;

type Destination = {
  readonly text: string;
  readonly options: { readonly socketPath: string } | { readonly host: string; readonly port: number };
};

function destination({ admin: { listen } }: Config): Destination {
  if (listen === 'off')
    throw new InputError(
      'the admin API is off (admin.listen, SALLYPORT_ADMIN_LISTEN), so the proxy cannot be asked',
    );
  if ('path' in listen) return { text: `unix:${listen.path}`, options: { socketPath: listen.path } };
  if (listen.port === 0)
    throw new InputError(
      'the port of the admin API is 0, so it is unknown: give its address as --admin-listen',
    );
  return { text: formatAddress(listen), options: { host: listen.host, port: listen.port } };
}

function unreachable(text: string, code: unknown): AdminUnreachable {
  return new AdminUnreachable(
    `the admin API at ${text} cannot be reached (${String(code)}): start \`sallyport proxy\`, or set --admin-listen to its address`,
  );
}

async function readToken(config: Config, to: Destination): Promise<string> {
  const file = adminTokenFile(config);
  await requireListenerOf(await ownersOf([file, dirname(file)]), to);
  const given = process.env['SALLYPORT_ADMIN_TOKEN'];
  if (given !== undefined && given !== '') return given;
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (cause) {
    const hint = 'set --state-dir to that of the proxy, or SALLYPORT_ADMIN_TOKEN';
    throw new InputError(`the admin token ${file} cannot be read (${String(codeOf(cause))}): ${hint}`, {
      cause,
    });
  }
}

async function ownersOf(paths: readonly string[]): Promise<readonly number[]> {
  const owners = paths.map((path) =>
    stat(path)
      .then(({ uid }) => [uid])
      .catch(() => []),
  ); // none of a missing one
  return (await Promise.all(owners)).flat();
}

/** Root and this user may listen there too. Another machine shows no users, and to the path of a socket others have no access. */
async function requireListenerOf(users: readonly number[], { text, options }: Destination): Promise<void> {
  if (!('port' in options)) return;
  const trusted = [0, process.getuid?.(), ...users];
  const foreign = (await listenersAt(options.host, options.port)).find((uid) => !trusted.includes(uid));
  if (foreign === undefined) return;
  throw new AdminUnreachable(
    `the admin token is not sent to ${text}, where a program of another user (uid ${foreign}) listens: end it and start \`sallyport proxy\`, or set --admin-listen`,
  );
}

function parseReply(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // another program listens there; the status says the rest
  }
}
