// The public deploy commands as processes: how each is called, and what it prints.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const here = import.meta.dirname;

/** `@langchain/langgraph-cli` for JavaScript. */
export function javascriptCommand() {
  const program = join(here, 'node_modules', '@langchain', 'langgraph-cli', 'dist', 'cli', 'cli.mjs');
  return { name: '@langchain/langgraph-cli 1.5.1', command: [process.execPath, program] };
}

/** `langgraph-cli` for Python, in its virtual environment. */
export function pythonCommand(python) {
  return { name: 'langgraph-cli 0.4.40 (Python)', command: [python, '-m', 'langgraph_cli'] };
}

/** Runs `deploy ...args` in `cwd`. The key is in the environment, as its users have it. */
export async function runDeploy({ command }, args, { url, key, cwd }) {
  const [program, ...first] = command;
  const { PATH, HOME } = process.env;
  const env = {
    ...{ PATH, HOME, NO_COLOR: '1', PYTHONUNBUFFERED: '1' },
    // It would report each call to a server of its vendor.
    ...{ LANGGRAPH_CLI_NO_ANALYTICS: '1', LANGGRAPH_HOST_API_KEY: key },
  };
  const all = [...first, 'deploy', ...args, '--host-url', url];
  const child = spawn(program, all, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code, stdout, stderr };
}
