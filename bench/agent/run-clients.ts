// The process of the clients, as the benchmark asks it for measurements.
import { join } from 'node:path';
import type { Children } from '../support/children.ts';
import type { Measured, Task } from './run-client.ts';

export type RunClients = (task: Task) => Promise<Measured>;

export function startRunClients(children: Children, name = 'clients'): RunClients {
  const program = join(import.meta.dirname, 'run-client.ts');
  const child = children.start(name, [process.execPath, program], { output: 'ipc' });
  return async (task) => {
    const measured = (await child.ask(task)) as Measured | { readonly error: string };
    if ('error' in measured) throw new Error(`${task.url} ${measured.error}`);
    return measured;
  };
}
