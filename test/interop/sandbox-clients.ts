// The public clients of sandboxes as processes, unchanged: `npm run interop` installs them by their own locks. A client tells its
// steps as lines of JSON, and asks for what only the test can do.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { cleanEnvironment, projectRoot } from '../support/spawned-process.ts';

const folder: string = join(projectRoot, 'interop');
const lock: Buffer = readFileSync(join(folder, 'requirements.txt'));
const version: string = createHash('sha256').update(lock).digest('hex').slice(0, 16);
/** For the packages of this lock. */
export const pythonFolder: string = join(projectRoot, 'node_modules', '.cache', `interop-${version}`);
export const python: string = join(pythonFolder, 'bin', 'python');

export type SandboxClientName =
  | 'langsmith-sandbox-js'
  | 'langsmith-generated-js'
  | 'langsmith-sandbox-python';

const commands: Readonly<Record<SandboxClientName, readonly string[]>> = {
  'langsmith-sandbox-js': [process.execPath, join(folder, 'javascript.mjs')],
  'langsmith-generated-js': [process.execPath, join(folder, 'generated.mjs')],
  'langsmith-sandbox-python': [python, join(folder, 'client.py')],
};

/** False when the client is not installed: its tests are skipped, and CI, which installs all, fails. */
export function isInstalled(name: SandboxClientName): boolean {
  if (name !== 'langsmith-sandbox-python') return existsSync(join(folder, 'node_modules', 'langsmith'));
  if (!existsSync(python)) return false;
  return spawnSync(python, ['-c', 'import langsmith.sandbox'], { stdio: 'ignore' }).status === 0;
}

export type Steps = ReadonlyMap<string, unknown>;

export function runSandboxClient(
  name: SandboxClientName,
  args: readonly string[],
  onAsked: (what: string) => unknown,
): Promise<Steps> {
  return runClientProgram(name, [...commands[name], ...args], onAsked);
}

/** Runs a client to its end and returns what it saw. `onAsked` does what it asks for. */
export async function runClientProgram(
  name: string,
  [program = '', ...args]: readonly string[],
  onAsked: (what: string) => unknown,
): Promise<Steps> {
  const child = spawn(program, args, { cwd: folder, env: cleanEnvironment() });
  const exited = once(child, 'exit');
  const errors = text(child.stderr);
  const steps = new Map<string, unknown>();
  for await (const line of createInterface({ input: child.stdout })) {
    const { step, value } = JSON.parse(line);
    if (step !== 'ask') steps.set(step, value);
    else child.stdin.write(`${JSON.stringify((await onAsked(value)) ?? null)}\n`);
  }
  const [code] = await exited;
  if (code !== 0) {
    const seen = JSON.stringify(Object.fromEntries(steps), undefined, 1);
    throw new Error(`${name} ended with ${code}\n${await errors}\nafter ${seen}`);
  }
  const ran = process.env['SALLYPORT_CLIENTS_RAN'];
  if (ran !== undefined) appendFileSync(ran, `${name}\n`);
  return steps;
}
