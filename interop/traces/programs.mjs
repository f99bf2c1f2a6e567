// The public clients of traces as processes, unchanged. A client tells its steps as lines of JSON on standard output.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

const here = import.meta.dirname;

export function programs(python) {
  return {
    javascript: [process.execPath, join(here, 'javascript.mjs')],
    python: [python, join(here, 'python_client.py')],
  };
}

/** Runs a client to its end. Returns its steps, and what it warned about. */
export async function runClient([program, ...first], args, env = {}) {
  const { PATH, HOME } = process.env;
  const child = spawn(program, [...first, ...args], {
    cwd: here,
    env: { PATH, HOME, LANG: 'C.UTF-8', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  const warnings = text(child.stderr);
  const steps = {};
  for await (const line of createInterface({ input: child.stdout })) {
    const { step, value } = JSON.parse(line);
    steps[step] = value;
  }
  const [code] = await exited;
  return { code, steps, warnings: await warnings };
}
