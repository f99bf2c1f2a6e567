// Ends this process when the server has ended, also while a graph holds up its event loop: a thread of its own watches the
// parent. Nothing else would end it: the end of the channel is an event of that loop.
import { Worker } from 'node:worker_threads';

/** Plain JavaScript. It never returns to an event loop, and so needs none. */
const PROGRAM = `
const { workerData } = require('node:worker_threads');
const clock = new Int32Array(new SharedArrayBuffer(4));
while (process.ppid === workerData) Atomics.wait(clock, 0, 0, 1000);
// With what the graph has started, where this process leads a group.
try { process.kill(-process.pid, 'SIGKILL'); } catch {}
process.kill(process.pid, 'SIGKILL');
`;

/** `parent` is the server's process id, as the server gave it: one that has ended meanwhile is not the parent any more. */
export function startWatchdog(parent: number): void {
  const thread = new Worker(PROGRAM, {
    ...{ eval: true, workerData: parent, env: {}, execArgv: [], name: 'watchdog' },
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 1 },
  });
  thread.unref();
}
