// The checkpoint that comes with the start of a run is the result of the first call alone, and only where that call asks for it.
import { expect, it } from 'vitest';
import { withLatest } from '../../../src/agent-worker/checkpoints/latest-checkpoint.ts';
import type { CallContext } from '../../../src/agent-worker/method.ts';
import type { StoredCheckpoint } from '../../../src/agent-worker/protocol/calls.ts';

const STORED: StoredCheckpoint = {
  ...{ thread_id: 't', checkpoint_ns: '', checkpoint_id: 'c', versions: {}, values: [], writes: [] },
  ...{ checkpoint: { type: 'json', text: '{}' }, metadata: { type: 'json', text: '{}' } },
};
const ofThread = { thread_id: 't', checkpoint_ns: '' };

function createServer() {
  const asked: string[] = [];
  const callServer = (async (method: string) => {
    asked.push(method);
    return null;
  }) as CallContext['callServer'];
  return { asked, callServer };
}

it.each([[STORED], [null]])('%j is the result of the first call', async (latest) => {
  const { asked, callServer } = createServer();
  const call = withLatest(callServer, latest);
  expect(await call('checkpoint.get', ofThread)).toBe(latest);
  expect(asked).toEqual([]);
  await call('checkpoint.get', ofThread);
  expect(asked).toEqual(['checkpoint.get']);
});

it('all else goes to the server: another checkpoint, a subgraph, what follows a write, and where nothing is known', async () => {
  const { asked, callServer } = createServer();
  await withLatest(callServer, STORED)('checkpoint.get', { ...ofThread, checkpoint_id: 'b' });
  await withLatest(callServer, STORED)('checkpoint.get', { ...ofThread, checkpoint_ns: 'child:1' });
  const written = withLatest(callServer, STORED);
  await written('checkpoint.put_writes', { ...ofThread, task_id: 'a', writes: [] });
  await written('checkpoint.get', ofThread);
  await withLatest(callServer, undefined)('checkpoint.get', ofThread);
  const gets = ['checkpoint.get', 'checkpoint.get'];
  expect(asked).toEqual([...gets, 'checkpoint.put_writes', ...gets]);
});
