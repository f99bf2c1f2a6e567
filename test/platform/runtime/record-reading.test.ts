// Records that cannot be read or stored are offered again, and the log says why once.
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { createBoxHostRuntime } from '../../../src/platform/runtime/box-host-runtime.ts';
import { createScratch } from '../../support/scratch.ts';

const none = { is_held: false, reason: 'a fake' };
const status = {
  ...{ kind: 'attached', configured: 'attached', version: '1', pid: 1 },
  capabilities: { isolation: none, limits: none, storage: none, agent: none },
};

it('a batch that cannot be stored is offered again, with one line in the log', async () => {
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  await writeFile(join(scratch.path, 'token'), 'a token');
  const batch = { box_id: randomUUID(), source: randomUUID(), records: [{ number: 7 }] };
  const acknowledged: unknown[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    if (request.url === '/v1/status') return void response.end(JSON.stringify(status));
    acknowledged.push(JSON.parse(Buffer.concat(chunks).toString()).acknowledged);
    // The first time as a box host of another version would.
    return void response.end(acknowledged.length === 1 ? '{}' : JSON.stringify(batch));
  });
  await new Promise<void>((resolve) => server.listen(join(scratch.path, 'api.sock'), resolve));
  onTestFinished(() => void server.close());
  const lines: { readonly msg: string }[] = [];
  const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line)) });
  const runtime = await createBoxHostRuntime({ command: ['/nonexistent'], directory: scratch.path }, log);
  const ending = new AbortController();
  let offered = 0;
  await runtime.readRecords(async () => {
    offered += 1;
    if (offered < 3) throw new Error('the database is away');
    if (offered === 5) ending.abort();
  }, ending.signal);
  expect([offered, acknowledged.slice(0, 4)]).toEqual([5, [undefined, undefined, undefined, undefined]]);
  expect(acknowledged.at(-1)).toEqual({ source: batch.source, number: 7 });
  expect(lines.map(({ msg }) => msg)).toEqual([
    'the records of sandboxes could not be read; it is tried again',
    'the records of sandboxes could not be read; it is tried again, which is over',
    'the records of sandboxes could not be stored; it is tried again',
    'the records of sandboxes could not be stored; it is tried again, which is over',
  ]);
});
