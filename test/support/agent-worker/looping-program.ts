// A process with a watchdog that holds up its event loop for ever, and one that starts it and waits.
import { spawn } from 'node:child_process';
import { startWatchdog } from '../../../src/agent-worker/watchdog.ts';

if (process.argv[2] === 'parent') {
  spawn(process.execPath, [import.meta.filename, String(process.pid)], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  process.stdin.resume();
} else {
  startWatchdog(Number(process.argv[2]));
  process.stdout.write('loops\n');
  for (;;);
}
