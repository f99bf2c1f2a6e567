// Preloaded into a spawned proxy (`node --import`): on SIGUSR2 it collects its garbage, writes a heap snapshot into the
// file that TEST_HEAP_FILE names, and writes a record. The product has no such function.
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString, writeHeapSnapshot } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
let snapshots = 0;

process.on('SIGUSR2', async () => {
  // A second collection takes what an event-loop turn released, because finalizers run in between.
  for (let round = 0; round < 3; round += 1) {
    collect();
    await turn();
  }
  writeHeapSnapshot(process.env['TEST_HEAP_FILE']);
  snapshots += 1;
  process.stderr.write(`${JSON.stringify({ msg: 'snapshot', snapshots })}\n`);
});
