// `npm run platform:storm [-- --kills 50 --own-kills 20 --clients 8 --responses 220 --jobs 6 --seed 1 --server debian]`: two platform
// processes on one database under load, one of them killed (SIGKILL) at random moments; then one with an embedded database.
// Exits with 1 if a write was lost, duplicated or separated from its event, or if a job did not run again in time.
import { chmod } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { percentilesOf } from '../bench/support/percentiles.ts';
import { connectOnce } from '../src/platform/store/database.ts';
import { openPostgres } from '../src/platform/store/embedded/postgres-server.ts';
import { runEmbeddedStorm } from '../test/platform/storm/embedded-storm.ts';
import { responsesPerSecond, runStorm, type StormResult } from '../test/platform/storm/storm.ts';
import { responsesIn, type Ledger } from '../test/platform/storm/storm-ledger.ts';
import { debianPrograms } from '../test/support/debian-postgres.ts';
import { createScratch } from '../test/support/scratch.ts';
import { toDatabaseUrl } from '../test/support/platform-process.ts';

const SHOWN_ERRORS = 20;

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    // Of the process with an embedded database.
    'own-kills': { type: 'string', default: '20' },
    clients: { type: 'string', default: '8' },
    // Between two kills, on average.
    responses: { type: 'string', default: '220' },
    jobs: { type: 'string', default: '6' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    server: { type: 'string', default: 'embedded' },
  },
});
const kills = numberOf('kills', 0, 10_000);
const ownKills = numberOf('own-kills', 0, 10_000);
const clients = numberOf('clients', 1, 100);
const responses = numberOf('responses', 10, 100_000);
const responsesBetweenKills = [Math.round(responses / 5), Math.round((responses * 9) / 5)] as const;
const jobs = numberOf('jobs', 0, 100);
const seed = numberOf('seed', 0, 2 ** 31);
if (values.server !== 'embedded' && values.server !== 'debian')
  throw new Error('--server must be embedded or debian');

console.log(`seed ${seed}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.versions.node}`);
const results = [await stormOnServer(values.server), await stormEmbedded()];
process.exitCode = results.every(Boolean) ? 0 : 1;

function numberOf(
  name: 'kills' | 'own-kills' | 'responses' | 'clients' | 'jobs' | 'seed',
  min: number,
  max: number,
): number {
  const value = Number(values[name]);
  if (!(Number.isSafeInteger(value) && value >= min && value <= max))
    throw new Error(`--${name} must be from ${min} to ${max}`);
  return value;
}

/** A server that outlives both processes. */
async function stormOnServer(kind: 'embedded' | 'debian'): Promise<boolean> {
  await using scratch = await createScratch();
  // Under root the server runs as another user.
  await chmod(scratch.path, 0o711);
  const server = await openPostgres({
    directory: join(scratch.path, 'server'),
    log: { info: () => undefined, warn: () => undefined },
    ...(kind === 'debian' ? { programs: await debianPrograms() } : {}),
  });
  try {
    const { connection, ownerConnection: owner } = server;
    const version = await connectOnce(owner, (client) => client.query('show server_version'));
    console.log(
      `two processes on PostgreSQL ${version.rows[0].server_version}, every write on disk before its response`,
    );
    const database = { url: toDatabaseUrl(connection), ownerUrl: toDatabaseUrl(owner) };
    const result = await runStorm({
      database,
      owner,
      directory: join(scratch.path, 'platform'),
      kills,
      clients,
      responsesBetweenKills,
      jobs,
      seed,
      onKill: printProgress,
    });
    print(result);
    console.log(`  jobs started again after a kill: ${report(result.rerunsMs)}`);
    return result.errors.length === 0;
  } finally {
    await server.close();
  }
}

/** The server ends with the process, and starts again with it. */
async function stormEmbedded(): Promise<boolean> {
  await using scratch = await createScratch();
  await chmod(scratch.path, 0o711);
  console.log('one process with an embedded PostgreSQL');
  const result = await runEmbeddedStorm({
    directory: join(scratch.path, 'platform'),
    kills: ownKills,
    clients,
    responsesBetweenKills,
    seed,
    onKill: printProgress,
  });
  print(result);
  return result.errors.length === 0;
}

function printProgress(nth: number, ledger: Ledger): void {
  if (nth % 10 === 0)
    console.log(`  ${nth} killed, ${responsesIn(ledger)} responses, ${ledger.lost.responses} lost`);
}

function print(result: Omit<StormResult, 'rerunsMs'>): void {
  const { ledger, startsMs, cleanupsMs, events, verified, busyMs, errors } = result;
  console.log(
    `  ${responsesIn(ledger)} responses in ${(busyMs / 1000).toFixed(0)} s, ${responsesPerSecond(result).toFixed(0)} a second; ` +
      `${ledger.lost.responses} lost, ${ledger.lost.resent} sent again; ${events} audit events`,
  );
  for (const [what, samples] of ledger.latenciesMs) console.log(`  ${what}: ${report(samples)}`);
  console.log(`  start until ready: ${report(startsMs)}`);
  console.log(`  connections closed after a kill: ${report(cleanupsMs)}`);
  console.log(`  audit verify: ${verified}`);
  for (const error of errors.slice(0, SHOWN_ERRORS)) console.log(`BROKEN: ${error}`);
  if (errors.length > SHOWN_ERRORS) console.log(`BROKEN: ${errors.length - SHOWN_ERRORS} more`);
}

function report(samples: readonly number[]): string {
  if (samples.length === 0) return 'none';
  const { count, p50, p99, max } = percentilesOf([Float64Array.from(samples)]);
  return `${count}, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, max ${max.toFixed(0)} ms`;
}
