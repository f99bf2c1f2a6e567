// The program of a worker: runs the code of a deployment for its agent server, over descriptor 3. It holds the variables of the
// deployment and nothing of the server, and ends when the channel does.
import { Socket } from 'node:net';
import { loadDeployment } from './load-deployment.ts';
import { serveWorker } from './serve-worker.ts';
import { describeUncaught } from './uncaught.ts';
import { startWatchdog } from './watchdog.ts';

const CHANNEL_DESCRIPTOR = 3;

startWatchdog(Number(process.argv[2]));
// A promise that nobody waits for fails alone: other runs of this process go on. An exception that nobody catches ends it.
process.on('unhandledRejection', (reason) =>
  process.stderr.write(`unhandled rejection: ${describeUncaught(reason)}\n`),
);
process.on('uncaughtException', (error) => {
  process.stderr.write(`uncaught exception: ${describeUncaught(error)}\n`);
  process.exit(1);
});
await serveWorker(new Socket({ fd: CHANNEL_DESCRIPTOR, readable: true, writable: true }), loadDeployment);
process.exit();
