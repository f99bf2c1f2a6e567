// A process that takes one job and never finishes it, until a test kills it. Arguments: the connection as JSON, the name of
// the job, and its retries.
import { createFdSink, createLog } from '../../src/base/log.ts';
import { z } from '../../src/base/schema.ts';
import { openDatabase } from '../../src/platform/store/database.ts';
import { defineJob } from '../../src/platform/store/job.ts';
import { openJobs } from '../../src/platform/store/jobs.ts';

const [connection = '', name = '', retries = ''] = process.argv.slice(2);
const log = createLog('info', createFdSink(1));
const options = { connection: JSON.parse(connection), maxConnections: 2, onError: () => undefined };
const job = defineJob({
  name,
  data: z.looseObject({}),
  retries: Number(retries),
  delaySeconds: 1,
  timeoutSeconds: 900,
  async run(_, { id }) {
    log.info({ id }, 'taken');
    await new Promise(() => undefined);
  },
});
const jobs = await openJobs({ ...options, log, jobs: [job], store: openDatabase(options) });
await jobs.work();
log.info('working');
