// Preloaded into a spawned proxy (`node --import`): SIGUSR2 has it collect its garbage, write what its heap then holds
// into the file that TEST_HEAP_FILE names, and say so with a record. The product has no such door.
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString, writeHeapSnapshot } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
let snapshots = 0;

process.on('SIGUSR2', async () => {
  // What a turn of the loop lets go of, another collection takes: finalizers run in between.
  for (let round = 0; round < 3; round += 1) {
    collect();
    await turn();
  }
  writeHeapSnapshot(process.env['TEST_HEAP_FILE']);
  snapshots += 1;
  process.stderr.write(`${JSON.stringify({ msg: 'snapshot', snapshots })}\n`);
});
