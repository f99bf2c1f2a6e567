// The database of a program beside the platform: what the operator reads when it cannot be used.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { parsePlatformConfig } from '../../../src/platform/config.ts';
import { openProgramStorage } from '../../../src/platform/programs/program-storage.ts';

const PARTS = {
  migrations: [],
  log: createLog('silent', { write: () => undefined }),
  openPools: () => ({ close: async () => undefined }),
};

async function open(url: string): Promise<unknown> {
  const parsed = parsePlatformConfig({}, { DATABASE_URL: url });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return openProgramStorage(parsed.value, PARTS);
}

async function findClosedPort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

/** A server of PostgreSQL that knows no user. */
const refusal = Buffer.from('SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed\0\0');
const refused = Buffer.concat([Buffer.from('E'), Buffer.alloc(4), refusal]);
refused.writeUInt32BE(refusal.length + 4, 1);

it('that cannot be reached is named by its variable and address, without the password', async () => {
  const port = await findClosedPort();
  await expect(open(`postgresql://owner:canary@127.0.0.1:${port}/platform`)).rejects.toThrow(
    `The database that DATABASE_URL names (127.0.0.1:${port}) cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}`,
  );
});

it('that refuses the user is not one of another version', async () => {
  const server = createServer((socket) => socket.once('data', () => socket.end(refused)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    await expect(open(`postgresql://owner:canary@127.0.0.1:${port}/platform`)).rejects.toThrow(
      'DATABASE_URL: the server refuses the connection: password authentication failed',
    );
  } finally {
    server.close();
  }
});
