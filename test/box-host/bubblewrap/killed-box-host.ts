// A box host that a test kills: opens a box in the directory of its argument, runs programs in it, and waits.
import { newBox, openBoxes, runInBox, startInBox } from './test-boxes.ts';

const boxes = await openBoxes(process.argv[2] ?? '');
const box = await boxes.create(newBox('one'));
await box.open();
const { output } = await runInBox(box, 'echo written >~/file; sync; echo $(ls /proc/self/fd)');
await startInBox(box, 'setsid sleep 600 & echo; sleep 600');
process.stdout.write(`${JSON.stringify({ uid: box.record.uid, output })}\n`);
