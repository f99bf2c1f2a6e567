// A thread in place of the parser: what the document says of itself is what happens to the thread. It accepts every other
// document as one without rules.
import { parentPort } from 'node:worker_threads';

parentPort?.on('message', (job: string) => {
  if (job.includes('"dies":"exit"')) process.exit(3);
  if (job.includes('"dies":"throw"')) throw new Error('a bug of the parser');
  if (job.includes('"dies":"memory"')) {
    const hoard: string[][] = [];
    for (;;) hoard.push(Array.from({ length: 100_000 }, () => 'x'));
  }
  if (job.includes('"dies":"hangs"')) for (;;);
  const config = { rules: [], callbacks: [], no_proxy: [] };
  parentPort?.postMessage(JSON.stringify({ ok: true, config, values: [], warnings: [] }));
});
