// Who decides about the callers of a revision, and which pages may call it: its configuration says whether it has an authentication
// handler, and has `http.cors`. The file is the work of a build, which may have put a link there.
import { open, realpath } from 'node:fs/promises';
import { constants } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../../../base/json/json-document.ts';
import { corsDocument, toCorsSettings } from '../../agent-server/configuration/cors-document.ts';
import type { AgentInput } from '../../agent-server/contract.ts';
import type { Cors } from '../../api/contract/cors.ts';

/** What a build takes. */
const MAX_BYTES = 4 * 1024 * 1024;

export type GraphAccess = {
  readonly access: AgentInput['deployment']['access'];
  /** Without its pattern, which only the deployment evaluates: one of a tenant could keep the gateway of all busy for ever. */
  readonly cors: Cors;
};

/** `origins`: those of CORS_ALLOW_ORIGINS. Rejects with an Error for the owner of the deployment. */
export async function readAccess(
  directory: string,
  configPath: string,
  origins: readonly string[] | undefined,
): Promise<GraphAccess> {
  const config = parseJson(await readWithin(directory, configPath).catch(refuse));
  const { auth, http } = isObject(config) ? config : {};
  const hasHandler = isObject(auth) && auth['path'] !== undefined && auth['path'] !== null;
  const document = isObject(http) ? http['cors'] : undefined;
  return { access: hasHandler ? 'handler' : 'gateway', cors: toCors(document, origins) };
}

/** As the agent server reads it, which does not start with one that is invalid. */
function toCors(document: unknown, variable: readonly string[] | undefined): Cors {
  const parsed = corsDocument.optional().safeParse(document);
  if (!parsed.success) return { origins: [] };
  const { origins, methods, headers, exposed, allowsCredentials, maxAgeSeconds } = toCorsSettings(
    parsed.data,
    variable,
  );
  return { origins, methods, headers, exposed, allowsCredentials, maxAgeSeconds };
}

function refuse(cause: unknown): never {
  throw new Error(
    'the configuration of its graphs cannot be read: if its build was lost, deploy it again, and its source is built anew',
    { cause },
  );
}

async function readWithin(directory: string, path: string): Promise<string> {
  const [root, file] = await Promise.all([realpath(directory), realpath(join(directory, path))]);
  if (!file.startsWith(`${root}/`)) throw new Error('a link leads out of the build');
  await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const found = await handle.stat();
  if (!found.isFile() || found.size > MAX_BYTES) throw new Error('it is no file, or too large');
  return handle.readFile('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
