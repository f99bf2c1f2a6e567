// A process with an embedded database server that commits rows as fast as it can and logs each acknowledged one, until a
// test kills it. Argument: the data directory.
import { createFdSink, createLog } from '../../src/base/log.ts';
import { connectOnce } from '../../src/platform/store/database.ts';
import { openPostgres } from '../../src/platform/store/embedded/postgres-server.ts';

const log = createLog('info', createFdSink(1));
const server = await openPostgres({
  directory: process.argv[2] ?? '',
  log: { info: () => undefined, warn: () => undefined },
});
await connectOnce(server.ownerConnection, async (client) => {
  await client.query('create table if not exists acknowledged (number bigint primary key)');
  const { rows } = await client.query<{ next: number }>(
    'select coalesce(max(number), 0)::int + 1 as next from acknowledged',
  );
  log.info('ready');
  for (let number = rows[0]?.next ?? 1; ; number += 1) {
    await client.query('insert into acknowledged values ($1)', [number]);
    log.info({ number }, 'committed');
  }
});
