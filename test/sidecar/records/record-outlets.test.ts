import { describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { ExchangeRecord, Recorder } from '../../../src/proxy/record.ts';
import { createRecordOutlets } from '../../../src/sidecar/records/record-outlets.ts';
import { createScratch } from '../../support/scratch.ts';
import { type DataPath, createDataPath, errorOf, head } from '../../proxy/data-path.ts';
import { createRecordReceiver } from './record-receiver.ts';

function emit(recorder: Recorder, sandbox: string): void {
  const record: ExchangeRecord = {
    sandbox,
    revision: 1,
    path: `/${'a'.repeat(500)}`,
    outcome: 'forwarded',
    bytes_up: 0,
    bytes_down: 0,
  };
  recorder.emit(record, performance.now());
}

type Outlets = AsyncDisposable & {
  readonly lines: readonly string[];
  recorderOf(sandbox: string): Recorder;
  readonly counts: Recorder['counts'];
};

async function outletsTo(url: string, whenBlocked: 'refuse' | 'drop'): Promise<Outlets> {
  const scratch = await createScratch();
  for (const sandbox of ['one', 'two']) await scratch.write(sandbox, 'some-token');
  const lines: string[] = [];
  const sink = {
    write: (line: string) => void lines.push(line),
    isBlocked: false,
    dropped: 0,
    close: async () => {},
  };
  const recordForward = { url, tokenFile: `${scratch.path}/{sandbox}`, caFile: undefined };
  const outlets = await createRecordOutlets(
    { isRecorded: true, whenBlocked, recordForward },
    { sink, log: createLog('silent', sink) },
  );
  return {
    lines,
    recorderOf: outlets.recorderOf,
    counts: outlets.counts,
    async [Symbol.asyncDispose]() {
      await outlets.close(0);
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const MORE_THAN_FIT = 20_000;

describe('when the platform accepts no records', () => {
  it('and log.when_blocked is refuse, new exchanges of that sandbox only are rejected', async () => {
    await using receiver = await createRecordReceiver(() => ({ status: 503 }));
    await using outlets = await outletsTo(receiver.url, 'refuse');
    const [one, two] = [outlets.recorderOf('one'), outlets.recorderOf('two')];
    for (let i = 0; i < MORE_THAN_FIT; i += 1) emit(one, 'one');
    emit(two, 'two');
    expect([one.isBlocked, two.isBlocked]).toEqual([true, false]);
    expect(outlets.lines).toHaveLength(MORE_THAN_FIT + 1);
    // Those of all sandboxes are counted together.
    expect(outlets.counts).toEqual({ emitted: MORE_THAN_FIT + 1, dropped: 0 });
  });

  it('and log.when_blocked is drop, nothing is rejected and the log has every record', async () => {
    await using receiver = await createRecordReceiver(() => ({ status: 503 }));
    await using outlets = await outletsTo(receiver.url, 'drop');
    const one = outlets.recorderOf('one');
    for (let i = 0; i < 2 * MORE_THAN_FIT; i += 1) emit(one, 'one');
    expect([one.isBlocked, one.counts.dropped]).toEqual([false, 0]);
    expect(outlets.lines).toHaveLength(2 * MORE_THAN_FIT);
  });
});

describe('a sidecar that forwards', () => {
  const close = 'Connection: close';
  const forwarding = async (url: string): Promise<DataPath> => {
    const scratch = await createScratch();
    const tokenFile = await scratch.write('token', 'some-token');
    const path = await createDataPath({
      respond: ({ send }) => send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
      config: { records: { forward: { url, token_file: tokenFile } }, timeouts: { drain_ms: 1_000 } },
    });
    const dispose = path[Symbol.asyncDispose];
    return {
      ...path,
      async [Symbol.asyncDispose]() {
        await dispose();
        await scratch[Symbol.asyncDispose]();
      },
    };
  };
  const ask = async (path: DataPath): Promise<string | undefined> => {
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`, close));
    const response = await client.readResponse();
    return errorOf(response.head);
  };

  it('continues to serve while a platform stalls, and ends in time', { tags: ['long'] }, async () => {
    await using receiver = await createRecordReceiver(() => 'stall');
    await using path = await forwarding(receiver.url);
    expect(await ask(path)).toBe(undefined);
    await receiver.untilReceived(1);
    expect(await ask(path)).toBe(undefined);
    const startedMs = performance.now();
    await path.proxy.sidecar.close();
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    expect(path.proxy.lines.at(-1)).toMatchObject({ lost: 2, cause: 'shutting down' });
  });
});
