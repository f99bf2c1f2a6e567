// The public clients of traces as processes, unchanged: the programs of interop/traces with the packages of the clients of sandboxes.
import { join } from 'node:path';
import { projectRoot } from '../support/spawned-process.ts';
import { isInstalled, python, runClientProgram, type Steps } from './sandbox-clients.ts';

export type TraceClientName = 'langsmith-traces-js' | 'langsmith-traces-python';

const folder: string = join(projectRoot, 'interop', 'traces');
const commands: Readonly<Record<TraceClientName, readonly string[]>> = {
  'langsmith-traces-js': [process.execPath, join(folder, 'javascript.mjs')],
  'langsmith-traces-python': [python, join(folder, 'python_client.py')],
};

export function isTraceClientInstalled(name: TraceClientName): boolean {
  return isInstalled(name === 'langsmith-traces-js' ? 'langsmith-sandbox-js' : 'langsmith-sandbox-python');
}

/** `tree`, `whole` or `load`, with the endpoint, the key and the name of a project. */
export function runTraceClient(name: TraceClientName, args: readonly string[]): Promise<Steps> {
  return runClientProgram(name, [...commands[name], ...args], (what) => {
    throw new Error(`a client of traces asks for ${what}`);
  });
}
