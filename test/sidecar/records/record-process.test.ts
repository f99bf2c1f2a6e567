import { describe, expect, it } from 'vitest';
import { createScratch } from '../../support/scratch.ts';
import { runToEnd, program, spawnSallyport } from '../../support/spawned-process.ts';
import { WireClient } from '../../support/wire-client.ts';
import { createRecordReceiver } from './record-receiver.ts';

const token = 'sp_sb_canary-of-a-process';

describe('sallyport proxy that forwards records', () => {
  it('sends waiting records at SIGTERM, and ends with code 0', async () => {
    await using receiver = await createRecordReceiver((_, index) =>
      index === 0 ? { status: 503 } : 'store',
    );
    await using scratch = await createScratch();
    const env = {
      SALLYPORT_RECORDS_FORWARD_URL: receiver.url,
      SALLYPORT_RECORDS_FORWARD_TOKEN_FILE: await scratch.write('token', token),
      SALLYPORT_LOG_LEVEL: 'trace',
    };
    await using sallyport = await spawnSallyport({ proxyConfig: { rules: [] }, env });
    for (let i = 0; i < 5; i += 1) {
      await using client = await WireClient.connect(sallyport.port);
      await client.send(`CONNECT nothing-${i}.test HTTP/1.1\r\n\r\n`);
      await client.finished;
    }
    await sallyport.process.record(({ msg }) => msg === 'exchange');
    sallyport.process.kill('SIGTERM');
    expect(await sallyport.process.exited).toEqual({ code: 0, signal: null });
    const logged = sallyport.process.records.filter(({ msg }) => msg === 'exchange');
    expect(receiver.stored.map(({ time }) => time)).toEqual(logged.map(({ time }) => time));
    expect(receiver.stored).toHaveLength(5);
    expect(receiver.batches.every((batch) => batch.token === token && !batch.body.includes(token))).toBe(
      true,
    );
    expect(sallyport.process.stdout + sallyport.process.stderr).not.toContain('canary-of-a-process');
  });

  it('does not start without its token file', async () => {
    const env = {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_RECORDS_FORWARD_URL: 'https://platform.example.com',
      SALLYPORT_RECORDS_FORWARD_TOKEN_FILE: '/nowhere/token',
    };
    await using scratch = await createScratch();
    const ended = await runToEnd(process.execPath, [program, 'proxy'], {
      env: { ...env, SALLYPORT_STATE_DIR: scratch.path },
    });
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('/nowhere/token cannot be read: ENOENT');
  });
});
