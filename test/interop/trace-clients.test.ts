// The public clients of traces, unchanged: each sends one tree of runs with an error, tokens and attachments, and reads it back.
// `npm run interop -- traces` runs all that they can do, also while requests fail and the platform is killed.
import { chmod } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mintKey } from '../../src/platform/identity/api-key.ts';
import { createTestDatabase, type TestDatabase } from '../support/platform-database.ts';
import { initPlatform, startPlatform } from '../support/platform-process.ts';
import { createScratch } from '../support/scratch.ts';
import { isTraceClientInstalled, runTraceClient, type TraceClientName } from './trace-clients.ts';

const names: readonly TraceClientName[] = ['langsmith-traces-js', 'langsmith-traces-python'];
const cleanup = new AsyncDisposableStack();
const key = mintKey('service').text;
let url = '';

beforeAll(async () => {
  if (!names.some(isTraceClientInstalled)) return;
  const scratch = cleanup.use(await createScratch());
  await chmod(scratch.path, 0o711);
  const database: TestDatabase = cleanup.use(await createTestDatabase());
  const options = { dataDirectory: scratch.path, database };
  await initPlatform(options, key);
  const platform = cleanup.use(startPlatform(options));
  const { port } = await platform.ready;
  url = `http://127.0.0.1:${port}`;
}, 120_000);
afterAll(() => cleanup.disposeAsync());

const seen = (error: string, attachments: object): object => ({
  root: [
    ...['conversation', 'chain', 'success'],
    ...[{ question: 'Why?', nested: { deep: [1, 2.5, null, '\u{1F600}'] } }, { reply: 'Because.' }],
    ['first', 'second'],
  ],
  metadata: ['thread-1', 'prod', 2],
  children: [
    ['attaching', 'success'],
    ['failing', 'error'],
    ['lookup', 'success'],
    ['model', 'success'],
  ],
  error,
  tokens: [10, 5, 15],
  attachments,
});

const [TEXT, BYTES] = ['text/plain', 'application/octet-stream'];

const expectations: readonly (readonly [TraceClientName, object])[] = [
  [
    'langsmith-traces-js',
    seen('Error: there is no such page', {
      'attachment.note': [TEXT, 200, true],
      'attachment.bytes': [BYTES, 200, true],
    }),
  ],
  [
    'langsmith-traces-python',
    seen("ValueError('there is no such page')", {
      note: [TEXT, true],
      bytes: [BYTES, true],
    }),
  ],
];

describe.each(expectations)('%s', (name, expected) => {
  it.runIf(isTraceClientInstalled(name))(
    'reads back the tree that it has traced',
    { tags: ['long'], timeout: 120_000 },
    async () => {
      const steps = await runTraceClient(name, ['tree', `${url}/api/v1`, key, name]);
      expect(Object.fromEntries(steps)).toMatchObject(expected);
    },
  );
});
