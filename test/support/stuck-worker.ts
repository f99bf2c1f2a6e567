// A process that takes one job and never finishes it, until a test kills it. Arguments: the connection as JSON, and a queue.
import { createFdSink, createLog } from '../../src/base/log.ts';
import { openJobs } from '../../src/platform/store/jobs.ts';

const [connection = '', queue = ''] = process.argv.slice(2);
const log = createLog('info', createFdSink(1));
const jobs = await openJobs({
  connection: JSON.parse(connection),
  maxConnections: 2,
  onError: () => undefined,
  log,
});
await jobs.work(queue, async (_, { id }) => {
  log.info({ id }, 'taken');
  await new Promise(() => undefined);
});
log.info('working');
