// Who decides about the callers of a revision: its configuration says whether it has an authentication handler. The file is the work of a
// build, which may have put a link there.
import { open, realpath } from 'node:fs/promises';
import { constants } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../../../base/json/json-document.ts';
import type { AgentInput } from '../../agent-server/contract.ts';

const MAX_BYTES = 1024 * 1024;

/** Rejects with an Error for the owner of the deployment. */
export async function readAccess(
  directory: string,
  configPath: string,
): Promise<AgentInput['deployment']['access']> {
  const config = parseJson(await readWithin(directory, configPath).catch(refuse));
  const auth = isObject(config) ? config['auth'] : undefined;
  return isObject(auth) && auth['path'] !== undefined && auth['path'] !== null ? 'handler' : 'gateway';
}

function refuse(cause: unknown): never {
  throw new Error('the configuration of its graphs cannot be read', { cause });
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
