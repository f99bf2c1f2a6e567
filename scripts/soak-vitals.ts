// Preloaded into a spawned proxy (`node --import`): on SIGUSR2 it collects garbage and logs its heap, external memory,
// descriptors and timers. For tests only.
import { readdirSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
let sample = 0;

// Timers of the runtime itself (one per socket) are not counted here: descriptors represent them.
const timers = new Set<NodeJS.Timeout>();
const setTimer = globalThis.setTimeout;
globalThis.setTimeout = Object.assign(
  (...given: Parameters<typeof setTimer>): NodeJS.Timeout => {
    const timer = setTimer(...given);
    timers.add(timer);
    return timer;
  },
  { __promisify__: setTimer.__promisify__ },
) as typeof setTimer;

/** Neither fired nor cleared. Node reports it nowhere else. */
function pendingTimers(): number {
  for (const timer of timers) if ((timer as { _destroyed?: boolean })._destroyed) timers.delete(timer);
  return timers.size;
}

process.on('SIGUSR2', async () => {
  const pending = pendingTimers();
  // Finalizers run between the collections, and release what the next one collects.
  for (let round = 0; round < 3; round += 1) {
    collect();
    await turn();
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  const descriptors = readdirSync('/proc/self/fd').length;
  sample += 1;
  const vitals = {
    msg: 'vitals',
    sample,
    bytes: heapUsed + external,
    resident: rss,
    descriptors,
    timers: pending,
  };
  process.stderr.write(`${JSON.stringify(vitals)}\n`);
});
