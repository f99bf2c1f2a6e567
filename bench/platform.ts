// What a request of the platform costs, compared with a bare Fastify on the same PostgreSQL: `npm run bench -- platform`. GET
// reads a listener, POST creates one and leaves its audit event; Fastify does each with one named query and nothing else.
import { parseArgs } from 'node:util';
import { createChildren } from './support/children.ts';
import { warningsOf } from './support/machine.ts';
import { otherLoadWarnings, watchOtherLoad } from './support/other-load.ts';
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
import { formatReport, reportOf } from './platform/report.ts';
import { openScene } from './platform/scene.ts';
import { findFastify, startBareServer, versionOf } from './platform/servers.ts';

try {
  await run();
} catch (error) {
  console.error(describeError(error));
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

type Options = {
  readonly json: boolean;
  readonly quick: boolean;
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
        rounds: { type: 'string' },
        package: { type: 'string' },
        profile: { type: 'string' },
      },
    });
    const { rounds: given = '9', json, quick } = values;
    const rounds = Number(given);
    if (!Number.isSafeInteger(rounds) || rounds < 1)
      throw new Error(`--rounds must be a whole number of at least 1, not ${given}`);
    return { json, quick, rounds, package: values.package, profile: values.profile };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function effortOf({ quick, rounds }: Options): Effort {
  return quick
    ? { rounds, warmUpRequests: 10_000, durationMs: 250 }
    : { rounds, warmUpRequests: 20_000, durationMs: 800 };
}

async function run(): Promise<void> {
  const options = readOptions();
  const fastify = findFastify();
  if (fastify === undefined)
    throw new Error('Fastify is not installed: run `npm run bench:peers -- fastify`');
  await using children = createChildren();
  const { machine, installation, platform: sallyport, databasePid } = await openScene(children, options);
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
