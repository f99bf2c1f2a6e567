// Preloaded into a spawned proxy (`node --import`): on SIGUSR2 it collects its garbage and writes a record, so that its
// memory can be compared before and after a load without uncollected garbage.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
let collections = 0;

process.on('SIGUSR2', () => {
  collect();
  collections += 1;
  process.stderr.write(`${JSON.stringify({ msg: 'collected', collections })}\n`);
});
