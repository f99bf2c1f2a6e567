// `npm run exports:storm [-- --kills 200 --rows 100 --seed 1]`: exports of 30 days, while two workers, the platform and the server of objects
// are killed (SIGKILL) at random moments. Exits with 1 if an export lacks a row or has one twice, if what a run says of its files is not
// true, if an upload is left, or if more exports or runs were at work at once than may be.
import { chmod } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { openPostgres } from '../src/platform/store/embedded/postgres-server.ts';
import { runExportStorm } from '../test/platform/storm/export-storm.ts';
import { parseExportStormOptions } from '../test/platform/storm/export-storm-options.ts';
import { toDatabaseUrl } from '../test/support/platform-process.ts';
import { createScratch } from '../test/support/scratch.ts';

const SHOWN_ERRORS = 40;
const options = parseExportStormOptions(process.argv.slice(2));
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
  const result = await runExportStorm({
    ...{ ...options, owner, directory: scratch.path },
    database: { url: toDatabaseUrl(connection), ownerUrl: toDatabaseUrl(owner) },
    onKill(nth, what, exports) {
      if (nth % 10 === 0) console.log(`  ${nth} killed, the last one was ${what}; ${exports} exports`);
    },
  });
  const { errors, exports, runs, rows, retries, most, busyMs } = result;
  console.log(
    `  ${exports} exports, ${runs} runs with ${retries} retries, ${rows} rows in ${(busyMs / 1000).toFixed(0)} s; ` +
      `at most ${most.exports} exports and ${most.runs} runs of one at once`,
  );
  for (const error of errors.slice(0, SHOWN_ERRORS)) console.log(`BROKEN: ${error}`);
  if (errors.length > SHOWN_ERRORS) console.log(`BROKEN: ${errors.length - SHOWN_ERRORS} more`);
  console.log(errors.length === 0 ? 'nothing was lost or doubled' : `${errors.length} violations`);
  process.exitCode = errors.length === 0 ? 0 : 1;
} finally {
  await server.close();
}
