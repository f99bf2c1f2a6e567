// Processes that cannot be started.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { startProcess } from '../../../../src/platform/agent-server/workers/worker-process.ts';

const PROGRAM = join(import.meta.dirname, '../../../support/agent-worker/few-descriptors-program.ts');
const log = createLog('silent', { write: () => undefined });

it('without descriptors no worker is started until there are some, and the server goes on', {
  tags: 'long',
}, async () => {
  const command = 'ulimit -n 60; exec "$0" "$1"';
  const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, PROGRAM]);
  expect(JSON.parse(stdout)).toMatchObject({ why: 'a worker has not started: EMFILE' });
});

it('a working directory that is not there is the reason', async () => {
  const child = startProcess({ root: '/nowhere', env: {}, heapMegabytes: 16 }, log);
  expect([child.pid, await child.ended]).toEqual([undefined, 'ENOENT']);
  child.kill();
});
