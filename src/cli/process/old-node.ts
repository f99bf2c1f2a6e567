// Warns before `run` starts a Node that ignores the proxy variables, if no preload helps it (see node-preload.ts): fetch of
// an old Node silently bypasses the proxy.
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, open, stat } from 'node:fs/promises';
import { basename, delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { hasPreload } from '../client/node-preload.ts';

// Programs on Node that read the proxy variables by themselves.
const READING: readonly string[] = ['npm', 'npx', 'pnpm', 'pnpx', 'yarn', 'yarnpkg'];

/** A warning if `command` is a Node, or a script for one, that may ignore the proxy variables. Runs `node --version`. */
export async function oldNodeWarning(command: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (READING.includes(basename(command))) return undefined;
  const program = await findProgram(command, env);
  const node = program === undefined ? undefined : await nodeBehind(program, env);
  const version = node === undefined ? undefined : await versionOf(node, env);
  if (version === undefined || readsProxyVariables(version)) return undefined;
  if (hasPreload(env['NODE_OPTIONS']) && isHelpedByPreload(version)) return undefined;
  return (
    `${node} is ${version}, whose fetch and https may ignore the proxy variables: a program that does not read them ` +
    'itself bypasses the proxy, without a credential; use Node 22.21, 24.5 or newer'
  );
}

function isHelpedByPreload(version: string): boolean {
  return Number(/^v(\d+)\./.exec(version)?.[1]) >= 18;
}

/** `v22.21.0` and later of that line, `v24.5.0` and later: both `fetch` and `https` read them. */
export function readsProxyVariables(version: string): boolean {
  const [, major = 0, minor = 0] = (/^v(\d+)\.(\d+)\./.exec(version) ?? []).map(Number);
  if (major === 22) return minor >= 21;
  return major === 24 ? minor >= 5 : major > 24;
}

/** The file that a shell would run. */
export async function findProgram(command: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (command.includes('/')) return command;
  for (const directory of (env['PATH'] ?? '').split(delimiter)) {
    const candidate = join(directory || '.', command);
    if (await isExecutable(candidate)) return candidate;
  }
  return undefined;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false; // missing or not executable: the search continues, as in a shell
  }
}

/** The Node that runs `program`: itself, or the one that its first line names (npm, npx, tsx). */
async function nodeBehind(program: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (isNode(program)) return program;
  const words = (await firstLine(program)).replace(/^#!\s*/, '').split(/\s+/);
  const named = words.find((word) => isNode(word));
  return named === undefined ? undefined : await findProgram(named, env);
}

function isNode(file: string): boolean {
  return /^node(?:js)?$/.test(basename(file));
}

async function firstLine(file: string): Promise<string> {
  try {
    await using handle = await open(file, 'r');
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(256), 0, 256, 0);
    const [line = ''] = buffer.toString('latin1', 0, bytesRead).split('\n');
    return line.startsWith('#!') ? line : '';
  } catch {
    return ''; // running it will report the error
  }
}

async function versionOf(node: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  try {
    return (await promisify(execFile)(node, ['--version'], { env, timeout: 2_000 })).stdout.trim();
  } catch {
    return undefined; // no Node, or one that cannot start, which running it will report
  }
}
