// What an install script of a package reaches while the real npm installs it: nothing but the registry. Each place is reached by the same script
// without isolation.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  isMissing,
  openTestWorkloads,
  script,
  type TestWorkloads,
  titled,
} from '../../workload/test-workloads.ts';
import { type BuilderScene, createBuilderScene, graphFile } from './builder-scene.ts';
import { lockFile, startTestRegistry, type TestRegistry } from './test-registry.ts';

const run = promisify(execFile);
const PROBE = join(import.meta.dirname, 'install-probe.cjs');
const GET = Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n').toString('base64');
/** To which every PostgreSQL server responds with one byte. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]).toString('base64');

type Place = { readonly name: string; readonly question: string; readonly expected?: string } & (
  | { readonly path: string }
  /** Of which the first is asked. */
  | { readonly pattern: string }
  | { readonly host: string; readonly port: number }
);
type Found = Readonly<Record<string, readonly string[]>>;

const names = [
  'the admin socket of the sidecar of a neighbour',
  'the database of the platform by its socket',
  'the database of the platform by TCP',
  'the API of the platform on loopback',
  'the socket of a neighbour',
  'the abstract socket of a neighbour',
  'the port of a neighbour',
] as const;
const METADATA = { name: 'the metadata address', host: '169.254.169.254', port: 80, question: GET };

/** What listens on this machine. */
async function openMachine(machine: TestWorkloads, { connection }: BuilderScene['scene']['database']) {
  // A real sidecar, which runs as long as its workload.
  const sandbox = { group: 'neighbour', policy: { version: 1, document: {}, secrets: {} } };
  const neighbour = await machine.start({ ...script('exec sleep 600'), network: sandbox });
  const databaseSocket = join(String(connection.host), `.s.PGSQL.${connection.port ?? 5432}`);
  // As where the platform uses a server by TCP: bytes of the real one.
  const database = createServer((client) => {
    const server = connect(databaseSocket);
    for (const one of [client, server]) one.on('error', () => undefined);
    client.pipe(server).pipe(client);
  });
  const api = createHttpServer((_, response) => response.end('reached'));
  const [socketPath, abstract] = [join(machine.scratch, 'api.sock'), `\0sallyport-neighbour-${randomUUID()}`];

  const greet = () => createServer((client) => client.on('error', () => undefined).end('reached'));
  const port = greet().listen(0, '127.0.0.1');
  const others = [greet().listen(socketPath), greet().listen(abstract), port];
  const servers = [database.listen(0, '127.0.0.1'), api.listen(0, '127.0.0.1'), ...others];
  await Promise.all(servers.map((server) => server.listening || once(server, 'listening')));
  await chmod(socketPath, 0o777);
  const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
  const host = '127.0.0.1';
  const places: readonly Place[] = [
    { name: names[0], pattern: join(machine.directory, 'private', 's-*'), question: GET },
    { name: names[1], path: databaseSocket, question: SSL_REQUEST },
    { name: names[2], host, port: portOf(database), question: SSL_REQUEST },
    { name: names[3], host, port: portOf(api), question: GET },
    { name: names[4], path: socketPath, question: '' },
    { name: names[5], path: abstract, question: '' },
    { name: names[6], host, port: portOf(port), question: '' },
  ];
  return {
    places,
    async [Symbol.asyncDispose]() {
      await neighbour.workload.stop(0);
      for (const server of servers) server.close();
    },
  };
}

/** By the script itself, as a program of this machine. */
async function probeMachine(scratch: string, places: readonly Place[]): Promise<Found> {
  const out = join(scratch, 'control.json');
  const { HTTP_PROXY: _, ...env } = process.env;
  await run(process.execPath, [PROBE, out, JSON.stringify(places)], { env });
  return JSON.parse(await readFile(out, 'utf8'));
}

/** In a network of the test, whose loopback has the address: nothing leaves the machine. */
async function probeMetadata(scratch: string): Promise<Found> {
  const out = join(scratch, 'metadata.json');
  const server = `
    const server = require('node:http').createServer((_, response) => response.end('reached'));
    server.listen(80, '169.254.169.254', () => {
      const { spawnSync } = require('node:child_process');
      const { spawn } = require('node:child_process');
      spawn(process.execPath, process.argv.slice(1), { stdio: 'inherit' }).on('exit', () => process.exit());
    });`;
  const shell = 'ip link set lo up; ip addr add 169.254.169.254/32 dev lo; exec "$@"';
  const probe = [PROBE, out, JSON.stringify([METADATA])];
  const command = ['/bin/sh', '-e', '-c', shell, 'sh', process.execPath, '-e', server, '--', ...probe];
  await run('unshare', ['--net', '--', ...command], { env: { PATH: process.env['PATH'] ?? '' } });
  return JSON.parse(await readFile(out, 'utf8'));
}

describe.skipIf(isMissing('bubblewrap'))(
  titled('an install script of a package', 'bubblewrap'),
  { tags: ['long'] },
  () => {
    let scene: BuilderScene;
    let machine: TestWorkloads;
    let opened: Awaited<ReturnType<typeof openMachine>>;
    let registry: TestRegistry;
    let control: Found;
    let installed: Readonly<Record<'preinstall' | 'postinstall', Found>>;
    let log: readonly string[];

    beforeAll(async () => {
      scene = await createBuilderScene();
      // Loopback is open for the registry of the operator: what keeps builds from the rest of it are their rules alone.
      machine = await openTestWorkloads('bubblewrap', { egress: { allow_private: ['loopback'] } });
      opened = await openMachine(machine, scene.scene.database);
      const scratch = join(machine.scratch, 'control');
      await mkdir(scratch);
      control = { ...(await probeMachine(scratch, opened.places)), ...(await probeMetadata(scratch)) };
      const places = JSON.stringify([...opened.places, METADATA]);
      const probe = readFileSync(PROBE, 'utf8').replace(
        'process.argv.slice(2)',
        `[process.argv[2], ${JSON.stringify(places)}]`,
      );
      const scripts = { preinstall: 'node probe.cjs pre.json', postinstall: 'node probe.cjs post.json' };
      registry = await startTestRegistry({
        hostile: { 'probe.cjs': probe, 'index.js': '', 'scripts.json': JSON.stringify(scripts) },
      });
      const env = { PATH: process.env['PATH'] ?? '', npm_config_registry: registry.url };
      await using running = await scene.start({
        ...{ workloads: machine.workloads, env },
        settings: { timeoutMs: 150_000, diskBytes: 256 * 1024 ** 2, memoryBytes: 1024 ** 3 },
      });
      const deployment = await scene.addDeployment();
      const files = { ...graphFile, ...lockFile(registry, ['hostile']) };
      const revisionId = await scene.addRevision(deployment, files);
      await vi.waitFor(() => expect(running.ends.get(revisionId)).toBeDefined(), {
        ...{ timeout: 150_000, interval: 100 },
      });
      log = await scene.logOf(deployment, revisionId);
      expect(log.join('\n')).toContain('built in');
      const place = join(await scene.directoryOf(revisionId), 'node_modules/hostile');
      const read = async (name: string): Promise<Found> =>
        JSON.parse(await readFile(join(place, name), 'utf8'));
      installed = { preinstall: await read('pre.json'), postinstall: await read('post.json') };
    }, 300_000);

    afterAll(async () => {
      await opened?.[Symbol.asyncDispose]();
      await machine?.[Symbol.asyncDispose]();
      await registry?.[Symbol.asyncDispose]();
      await scene?.[Symbol.asyncDispose]();
    });

    it.each([...names, METADATA.name])('does not reach %s, and without isolation it does', (name) => {
      expect(control[name]).toEqual(['reached']);
      for (const found of [installed.preinstall, installed.postinstall]) {
        const outcomes = found[name] ?? [];
        expect(outcomes.length).toBeGreaterThan(0);
        expect(outcomes).not.toContain('reached');
        expect(outcomes).not.toContain('silent');
      }
    });

    it('gets refusals from its proxy, and each different one is a line of the log', () => {
      const tcp = [...opened.places, METADATA].filter((place): place is typeof METADATA => 'host' in place);
      for (const { name, host, port } of tcp) {
        const [, ...proxied] = installed.postinstall[name] ?? [];
        expect(proxied).toEqual([
          expect.stringMatching(/^closed HTTP\/1\.1 403/),
          expect.stringMatching(/^closed HTTP\/1\.1 403/),
        ]);
        const authority = port === 80 ? host : `${host}:${port}`;
        const lines = log.filter(
          (line) => line.startsWith('WARNING refused by the network of builds') && line.includes(authority),
        );
        // Of two requests that both scripts sent.
        expect(lines, authority).toHaveLength(2);
        expect(new Set(lines).size, authority).toBe(2);
      }
    });

    it('reached the registry', () => {
      expect(registry.requests).toContain('/hostile/-/hostile-1.0.0.tgz');
    });
  },
);
