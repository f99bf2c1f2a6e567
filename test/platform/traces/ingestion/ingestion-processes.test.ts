// Two platform processes on one database take the runs of one workspace at the same time; one of them is killed in the middle, again and
// again. Clients send what was not acknowledged to the other one.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mintKey } from '../../../../src/platform/identity/api-key.ts';
import { createTestDatabase } from '../../../support/platform-database.ts';
import { initPlatform, type PlatformProcess, startPlatform } from '../../../support/platform-process.ts';
import { createScratch } from '../../../support/scratch.ts';
import { newRun, now } from './ingestion-scene.ts';
import { encodeParts, MULTIPART, partsOf } from './multipart-body.ts';

const KILLS = 5;
const RUNS_A_REQUEST = 20;

describe('two processes that take runs of one workspace', { tags: ['long'], timeout: 300_000 }, () => {
  it('leave each acknowledged run once and whole, also when one of them is killed', async () => {
    await using database = await createTestDatabase();
    await using scratch = await createScratch();
    const key = mintKey('service').text;
    const options = { dataDirectory: join(scratch.path, 'data'), database };
    await initPlatform(options, key);
    const start = (): PlatformProcess => startPlatform(options);
    let killed = start();
    await using other = start();
    const sent: string[] = [];
    const send = async (to: PlatformProcess, body: Uint8Array): Promise<boolean> => {
      const { port } = await to.ready;
      const response = await fetch(`http://127.0.0.1:${port}/runs/multipart`, {
        ...{ method: 'POST', body },
        headers: { 'X-Api-Key': key, 'Content-Type': MULTIPART },
      });
      return response.status === 202;
    };
    for (let kill = 0; kill < KILLS; kill += 1) {
      const runs = Array.from({ length: RUNS_A_REQUEST }, () => newRun({ inputs: { q: kill } }));
      const post = encodeParts(runs.flatMap((run) => partsOf('post', run)));
      const ended = runs.map((run) => ({ ...run, end_time: now(), outputs: { a: kill } }));
      const patch = encodeParts(ended.toReversed().flatMap((run) => partsOf('patch', run)));
      await killed.ready;
      // The same requests to both at once; the first one may end in the middle of either.
      const requests = [send(killed, post), send(killed, patch), send(other, patch), send(other, post)];
      killed.process.kill('SIGKILL');
      const outcomes = await Promise.allSettled(requests);
      expect(outcomes.slice(2)).toEqual([
        { status: 'fulfilled', value: true },
        { status: 'fulfilled', value: true },
      ]);
      sent.push(...runs.map(({ id }) => id));
      await killed[Symbol.asyncDispose]();
      killed = start();
    }
    await killed[Symbol.asyncDispose]();
    const rows = await database.store.db.selectFrom('trace_runs').select(['id', 'status', 'name']).execute();
    expect(rows.map(({ id }) => id).toSorted()).toEqual(sent.toSorted());
    expect(new Set(rows.map(({ status, name }) => `${name} ${status}`))).toEqual(new Set(['run success']));
  });
});
