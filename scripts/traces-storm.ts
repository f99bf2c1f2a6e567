// `npm run traces:storm [-- --kills 50 --clients 8 --seed 1]`: two platform processes take the runs of one tenant at once, by multipart,
// batch and single calls, also twice and with a PATCH before its POST, and are killed (SIGKILL) at random moments. Exits with 1 if a run
// that was accepted is lost, is there twice or has lost a field, or if a request is there in part.
import { chmod } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { openPostgres } from '../src/platform/store/embedded/postgres-server.ts';
import { runTraceStorm } from '../test/platform/storm/trace-storm.ts';
import { parseTraceStormOptions } from '../test/platform/storm/trace-storm-options.ts';
import { toDatabaseUrl } from '../test/support/platform-process.ts';
import { createScratch } from '../test/support/scratch.ts';

const SHOWN_ERRORS = 40;
const options = parseTraceStormOptions(process.argv.slice(2));
console.log(
  `seed ${options.seed}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.versions.node}`,
);
await using scratch = await createScratch();
// Under root the server runs as another user.
await chmod(scratch.path, 0o711);
const server = await openPostgres({
  directory: join(scratch.path, 'server'),
  log: { info: () => undefined, warn: () => undefined },
});
try {
  const { connection, ownerConnection: owner } = server;
  const result = await runTraceStorm({
    ...{ ...options, owner, directory: join(scratch.path, 'platform') },
    database: { url: toDatabaseUrl(connection), ownerUrl: toDatabaseUrl(owner) },
    onKill(nth, requests) {
      if (nth % 10 === 0) console.log(`  ${nth} killed, ${requests.length} requests`);
    },
  });
  const { requests, runs, startsMs, busyMs, errors } = result;
  const count = (outcome: string): number => requests.filter((one) => one.outcome === outcome).length;
  console.log(
    `  ${requests.length} requests in ${(busyMs / 1000).toFixed(0)} s: ${count('accepted')} accepted, ${count('refused')} refused, ` +
      `${count('unknown')} lost; ${runs} runs`,
  );
  console.log(`  starts took at most ${Math.max(...startsMs).toFixed(0)} ms`);
  for (const error of errors.slice(0, SHOWN_ERRORS)) console.log(`BROKEN: ${error}`);
  if (errors.length > SHOWN_ERRORS) console.log(`BROKEN: ${errors.length - SHOWN_ERRORS} more`);
  console.log(errors.length === 0 ? 'nothing was lost or doubled' : `${errors.length} violations`);
  process.exitCode = errors.length === 0 ? 0 : 1;
} finally {
  await server.close();
}
