import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { identifyProcess, isOfThisBoot, WorkloadRecords } from '../../src/workload/workload-records.ts';

async function createPlace(): Promise<string> {
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  return join(scratch.path, 'records');
}

it('are there after a restart, until they are removed', async () => {
  const place = await createPlace();
  const records = await WorkloadRecords.open(place);
  const process_ = await identifyProcess(process.pid);
  await records.write('one', { isolation: 'user', uid: 260_001 });
  await records.write('one', { isolation: 'user', uid: 260_001, ...(process_ && { process: process_ }) });
  await records.write('two', { isolation: 'bubblewrap' });
  const again = await WorkloadRecords.open(place);
  expect([...(await again.list())]).toEqual([
    ['one', { isolation: 'user', uid: 260_001, process: process_ }],
    ['two', { isolation: 'bubblewrap' }],
  ]);
  await again.remove('one');
  expect([...(await again.list()).keys()]).toEqual(['two']);
});

it('that are damaged keep the id; what is no record is removed', async () => {
  const place = await createPlace();
  await mkdir(place);
  await writeFile(join(place, 'one.json'), '{"isolation":');
  await writeFile(join(place, 'two.json'), '{"isolation":"none","process":{"pid":1}}');
  await writeFile(join(place, 'three.json.new'), '{}');
  const records = await WorkloadRecords.open(place);
  expect([...(await records.list())]).toEqual([
    ['one', undefined],
    ['two', undefined],
  ]);
  expect(await readdir(place)).toEqual(['one.json', 'two.json']);
});

it('name a process of this start of the machine', async () => {
  const found = await identifyProcess(process.pid);
  expect(found).toMatchObject({ pid: process.pid });
  if (found === undefined) return;
  expect(await isOfThisBoot(found)).toBe(true);
  expect(await isOfThisBoot({ ...found, boot: 'another one' })).toBe(false);
});
