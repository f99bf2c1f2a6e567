// Preloaded into a spawned proxy (`node --import`): SIGUSR2 has it collect its garbage and say with a record what it then
// holds: heap, memory outside of it, descriptors, timers. The product has no such door.
import { readdirSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
let sample = 0;

// Those of the runtime itself (one for each socket) are not made here: descriptors stand for them.
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

/** Neither fired nor cleared. Node tells it of a timer nowhere else. */
function pendingTimers(): number {
  for (const timer of timers) if ((timer as { _destroyed?: boolean })._destroyed) timers.delete(timer);
  return timers.size;
}

process.on('SIGUSR2', async () => {
  const pending = pendingTimers();
  // What a turn of the loop lets go of, another collection takes: finalizers run in between.
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
