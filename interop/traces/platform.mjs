// A platform process of this checkout on a fixed port and on a database that outlives it: it can be killed and started again.
import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { mintKey } from '../../src/platform/identity/api-key.ts';
import { openPostgres } from '../../src/platform/store/embedded/postgres-server.ts';
import { initPlatform, startPlatform, toDatabaseUrl } from '../../test/support/platform-process.ts';
import { createScratch } from '../../test/support/scratch.ts';

/** Everything ends with `cleanup`. */
export async function startTracePlatform(cleanup) {
  const scratch = cleanup.use(await createScratch());
  // Under root the database runs as another user.
  await chmod(scratch.path, 0o711);
  const database = await openPostgres({
    directory: join(scratch.path, 'server'),
    log: { info: () => undefined, warn: () => undefined },
  });
  cleanup.defer(() => database.close());
  const port = await findPort();
  const options = {
    dataDirectory: join(scratch.path, 'data'),
    database: {
      url: toDatabaseUrl(database.connection),
      ownerUrl: toDatabaseUrl(database.ownerConnection),
    },
    env: { SALLYPORT_PLATFORM_LISTEN: `127.0.0.1:${port}` },
  };
  const key = mintKey('service').text;
  await initPlatform(options, key);
  let platform = startPlatform(options);
  cleanup.defer(() => platform[Symbol.asyncDispose]());
  await platform.ready;
  return {
    key,
    url: `http://127.0.0.1:${port}`,
    /** As the platform connects to it. */
    connection: database.connection,
    /** SIGKILL at once. Resolves with the milliseconds until the next process is ready. */
    async restart() {
      const began = performance.now();
      platform.process.kill('SIGKILL');
      await platform.process.exited;
      platform = startPlatform(options);
      await platform.ready;
      return performance.now() - began;
    },
    problems: () => platform.process.records.filter(({ level }) => level === 'error' || level === 'fatal'),
  };
}

async function findPort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
