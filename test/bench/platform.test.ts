// The benchmark of the platform: wrong options end it before anything starts, and what it counts on the wire is exact.
import { once } from 'node:events';
import { type Socket, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDatabaseRelay } from '../../bench/platform/database-relay.ts';
import { reportOf } from '../../bench/platform/report.ts';
import { createScratch } from '../support/scratch.ts';
import { projectRoot, runToEnd } from '../support/spawned-process.ts';

describe('npm run bench -- platform', () => {
  it.each([
    [['--rounds', '0'], 'bench: --rounds must be a whole number of at least 1, not 0\n'],
    [['--nosuch'], "bench: Unknown option '--nosuch'\n"],
  ])('%s ends with one line and exit code 2', async (args, expected) => {
    const bench = join(projectRoot, 'bench', 'main.ts');
    const { code, stdout, stderr } = await runToEnd(process.execPath, [bench, 'platform', ...args]);
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expected });
  });
});

describe('the relay that counts', () => {
  it('counts statements, and the times that a client waits', async () => {
    await using scratch = await createScratch();
    const received: Buffer[] = [];
    const connections = Promise.withResolvers<Socket>();
    const server = createServer((socket) => {
      socket.on('data', (bytes: Buffer) => received.push(bytes));
      connections.resolve(socket);
    }).listen(join(scratch.path, '.s.PGSQL.5432'));
    await once(server, 'listening');
    using relay = await openDatabaseRelay(scratch.path, join(scratch.path, 'relay'));
    const client = connect(join(relay.host, '.s.PGSQL.5432'));
    const upstream = await connections.promise;
    const say = async (bytes: Buffer): Promise<void> => {
      const sent = Buffer.concat([...received, bytes]);
      client.write(bytes);
      while (Buffer.concat(received).length < sent.length) await once(upstream, 'data');
      expect(Buffer.concat(received)).toEqual(sent);
    };
    const respond = async (): Promise<void> => {
      upstream.write('Z');
      await once(client, 'data');
    };
    await say(Buffer.from([0, 0, 0, 8, 0, 3, 0, 0]));
    await respond();
    // Three statements of two kinds at once, one of them cut in two.
    await say(Buffer.concat([message('Q', 'begin\0'), message('P'), message('E', '123')]));
    await say(message('E', 'abcdef').subarray(0, 7));
    await say(message('E', 'abcdef').subarray(7));
    expect(relay.counts()).toEqual({ statements: 3, roundTrips: 2 });
    await respond();
    await say(Buffer.concat([message('S'), message('Q', 'commit\0')]));
    expect(relay.counts()).toEqual({ statements: 4, roundTrips: 3 });
    server.close();
  });
});

it('a ratio is the median of the ratios of its rounds', () => {
  const round = (cpu_us: number) => ({ cpu_us, postgresql_us: 1, p50_ms: 1, p99_ms: 1, per_second: 1 });
  const side = { sallyport: [200, 300, 900].map(round), fastify: [100, 100, 100].map(round) };
  expect(reportOf({ GET: side, POST: side }).ratios.GET).toMatchObject({
    median: 3,
    low: 2,
    high: 9,
    sallyport: 300,
    fastify: 100,
  });
});

function message(type: string, content = ''): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(4 + content.length);
  return Buffer.concat([Buffer.from(type), length, Buffer.from(content)]);
}
