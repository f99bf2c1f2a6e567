// `npm run agent:storm [-- --kills 100 --clients 12 --seed 1]`: two agent servers on one database, clients that create runs of all
// kinds, and servers and workers that are killed, or stopped and continued, at random. Exits with 1 if a run was lost or ended twice, if a superstep is missing or
// doubled, if a resumed stream has a gap, or if anything else that was responded is not true.
import { chmod } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { openPostgres } from '../src/platform/store/embedded/postgres-server.ts';
import { runAgentStorm } from '../test/platform/storm/agent-storm.ts';
import { parseAgentStormOptions } from '../test/platform/storm/agent-storm-options.ts';
import { toDatabaseUrl } from '../test/support/platform-process.ts';
import { setup as setupProgram } from '../test/support/program-setup.ts';
import { createScratch } from '../test/support/scratch.ts';

const SHOWN_ERRORS = 40;
const options = parseAgentStormOptions(process.argv.slice(2));
console.log(
  `seed ${options.seed}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.versions.node}`,
);
// Servers of the bundle start in half of the time, and are killed while they work rather than while they start.
await setupProgram();
const program = process.env['SALLYPORT_TEST_PROGRAM'];
await using scratch = await createScratch();
// Under root the server runs as another user.
await chmod(scratch.path, 0o711);
const server = await openPostgres({
  directory: join(scratch.path, 'server'),
  log: { info: () => undefined, warn: () => undefined },
});
try {
  const { connection, ownerConnection: owner } = server;
  const database = { url: toDatabaseUrl(connection), ownerUrl: toDatabaseUrl(owner) };
  const result = await runAgentStorm({
    ...{ ...options, owner, database, directory: scratch.path, program },
    onKill(nth, { jobs, errors }) {
      if (nth % 10 === 0) console.log(`  ${nth} killed, ${jobs.length} runs, ${errors.length} violations`);
    },
  });
  const show = (counts: ReadonlyMap<string, number>): string =>
    [...counts].map(([what, some]) => `${some} ${what}`).join(', ');
  console.log(
    `  killed or stopped: ${show(result.kills)}; starts took at most ${Math.max(...result.startsMs).toFixed(0)} ms`,
  );
  console.log(`  runs: ${show(result.runs)}, on ${result.threads} threads; ${show(result.counts)}`);
  console.log(
    `  more than one attempt: ${result.attemptsAboveOne} runs, at most ${result.mostAttempts} attempts`,
  );
  console.log(
    `  of killed servers: ${result.takeovers} runs, free after ${result.longestFreeMs.toFixed(0)} ms at most with a server that runs, ` +
      `executed again after ${result.longestClaimedMs.toFixed(0)} ms at most`,
  );
  for (const error of result.errors.slice(0, SHOWN_ERRORS)) console.log(`BROKEN: ${error}`);
  if (result.errors.length > SHOWN_ERRORS) console.log(`BROKEN: ${result.errors.length - SHOWN_ERRORS} more`);
  process.exitCode = result.errors.length === 0 ? 0 : 1;
} finally {
  await server.close();
}
