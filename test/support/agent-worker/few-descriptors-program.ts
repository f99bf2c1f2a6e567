// A server of workers that has no descriptor left when its worker ends, and gets them back later.
import { closeSync, openSync } from 'node:fs';
import { startTestWorkers, testRun } from './test-workers.ts';

/** All that this process may have. */
function openAll(): readonly number[] {
  const opened: number[] = [];
  for (;;)
    try {
      opened.push(openSync('/dev/null', 'r'));
    } catch {
      return opened;
    }
}

await using workers = await startTestWorkers({ backoffMs: [20, 20] });
await workers.run(...testRun('exit')).catch(() => undefined);
// The next worker is started by a timer, and the one after it by another.
const { pid } = JSON.parse(await workers.call('graph.schemas', { graph_id: 'a' }));
const opened = openAll();
process.kill(pid, 'SIGKILL');
await workers.logged(/not started/);
await workers.logged(/not started/);
for (const descriptor of opened) closeSync(descriptor);
await workers.call('graph.schemas', { graph_id: 'a' });
process.stdout.write(`${workers.lines.find((line) => line.includes('not started'))}\n`);
