// Replaces a sidecar in the tests of its state: it reads directory and first number from standard input, writes one state
// after the other, small and large, and prints when each is begun and when it is stored. With `last` it ends before that.
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SealedStateStore } from '../../../src/sidecar/state/state-store.ts';

const LARGE_CHARS = 400_000;

for await (const line of createInterface(process.stdin)) {
  const { directory, first, last } = JSON.parse(line);
  const store = new SealedStateStore({ directory, key: { file: join(directory, 'state.key') } });
  await store.readAll();
  for (let number = first; number !== last; number += 1) {
    const filler = 'x'.repeat(number % 4 === 0 ? LARGE_CHARS : number % 500);
    say(`begin ${number}`);
    try {
      await store.write('box', `${number}:${filler}:${number}`);
    } catch (error) {
      say(`failed ${number} ${String(error)}`);
      break;
    }
    say(`done ${number}`);
  }
}

// Synchronously, so that the output before a kill arrives.
function say(text: string): void {
  writeSync(1, `${text}\n`);
}
