// A process that has no descriptor left for a program of a box, and prints what becomes of it.
import { closeSync, openSync } from 'node:fs';
import { BoxProgram } from '../../../src/box-host/bubblewrap/box-program.ts';

const held: number[] = [];
try {
  for (;;) held.push(openSync('/dev/null', 'r'));
} catch {
  // None is left.
}
// The file of the filter can be opened still.
for (const descriptor of held.splice(0, 2)) closeSync(descriptor);
let outcome = 'started';
try {
  BoxProgram.start({
    namespaces: {},
    uid: undefined,
    cgroupFiles: [],
    maxProcesses: undefined,
    seccompFile: '/dev/null',
    box: {
      root: '/',
      hostUsr: undefined,
      programs: undefined,
      sharedMemoryBytes: 1,
      hostname: 'box',
      environment: {},
    },
    command: ['/usr/bin/true'],
    endSurvivors: async () => undefined,
  });
} catch (error) {
  outcome = String(error);
}
for (const descriptor of held) closeSync(descriptor);
// After what a child process reports in a later turn.
setImmediate(() => console.log(outcome));
