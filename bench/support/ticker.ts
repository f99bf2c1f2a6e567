// Ticks finer than the millisecond of timers: a thread that sleeps and wakes its parent. The sender of a constant rate
// spins on nothing, since it shares its core with the origin. The file is both the thread and its handle.
import { once } from 'node:events';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

export type Ticker = { stop(): Promise<void> };

/** Calls `onTick` about every `intervalMs`, from the time it resolves on. */
export async function startTicker(intervalMs: number, onTick: () => void): Promise<Ticker> {
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(import.meta.filename, { workerData: { flag, intervalMs } });
  await once(worker, 'message');
  worker.on('message', onTick);
  return {
    async stop() {
      Atomics.store(flag, 0, 1);
      Atomics.notify(flag, 0);
      await once(worker, 'exit');
    },
  };
}

function tick({ flag, intervalMs }: { flag: Int32Array; intervalMs: number }): void {
  let nextMs = performance.now();
  while (Atomics.load(flag, 0) === 0) {
    parentPort?.postMessage(0);
    nextMs = Math.max(nextMs + intervalMs, performance.now());
    Atomics.wait(flag, 0, 0, nextMs - performance.now());
  }
}

if (!isMainThread) tick(workerData);
