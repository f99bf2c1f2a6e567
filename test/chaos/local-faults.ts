// Failures of the machine: no file descriptors, a clock that jumps, a busy processor, a small heap.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rename, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { response } from '../support/recording-origin.ts';
import { runToEnd } from '../support/spawned-process.ts';
import { WireClient } from '../support/wire-client.ts';
import { fetchCode, openTunnel, readCode } from './proxy-request.ts';
import type { ChaosScene } from './chaos-scene.ts';
import type { Fault } from './fault.ts';

export const faketimeLibrary: string = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`;

const STARVED_ASKS = 50;
const HEAP_MIB = 64;
const LARGE_BYTES = 8_000_000;
const LARGE_AT_ONCE = 32;
const NEW_NAMES = 300;

export const localFaults: readonly Fault[] = [
  {
    name: 'local: EMFILE',
    expects: '502 upstream_unreachable, closed',
    arrange: arrangeNoDescriptors,
  },
  {
    name: 'local: clock +-1 day',
    expects: '+1d 200, -1d 502 upstream_untrusted',
    needs: ['faketime'],
    arrange: arrangeClock,
  },
  { name: 'local: CPU starved', expects: `${STARVED_ASKS} x 200`, arrange: arrangeStarved },
  {
    name: 'local: GC pressure',
    expects: `${LARGE_AT_ONCE + NEW_NAMES} x 200`,
    settings: { flags: [`--max-old-space-size=${HEAP_MIB}`] },
    arrange: arrangePressure,
  },
];

/** Leaves one free descriptor, for the client: there is none for its host or for the next client. */
async function arrangeNoDescriptors(scene: ChaosScene): ReturnType<Fault['arrange']> {
  const { process: child, port } = await scene.start();
  let limit = '';
  return {
    authority: scene.at(),
    async inject() {
      limit = await openFiles(child.pid);
      await limitOpenFiles(child.pid, String((await lowestFree(child.pid)) + 1));
      await using first = await WireClient.connect(port);
      const authority = scene.at();
      await first.openTunnel(authority);
      await first.startTls({ ca: scene.sidecar.caPem, name: 'failing.test' });
      await first.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
      const code = await readCode(first).catch(() => 'closed');
      scene.collect(first.transcript);
      return `${code}, ${await fetchCode(scene.sidecar, authority)}`;
    },
    remove: () => limitOpenFiles(child.pid, limit),
  };
}

async function openFiles(pid: number): Promise<string> {
  const { stdout } = await runToEnd('prlimit', [
    '--pid',
    String(pid),
    '--nofile',
    '--noheadings',
    '-o',
    'SOFT',
  ]);
  return stdout.trim();
}

/** Sets the soft limit, so that it can be raised again. */
async function limitOpenFiles(pid: number, soft: string): Promise<void> {
  const { code, stderr } = await runToEnd('prlimit', ['--pid', String(pid), `--nofile=${soft}:`]);
  if (code !== 0) throw new Error(`cannot set the limit:  ${stderr}`);
}

async function lowestFree(pid: number): Promise<number> {
  const taken = new Set((await readdir(`/proc/${pid}/fd`)).map(Number));
  let free = 0;
  while (taken.has(free)) free += 1;
  return free;
}

/** Shifts only the clock of the proxy: clients and hosts verify certificates with the right clock. */
async function arrangeClock(scene: ChaosScene): ReturnType<Fault['arrange']> {
  const file = join(scene.scratch.path, 'clock');
  const set = async (offset: string): Promise<void> => {
    // Replaced atomically: the library reads the file repeatedly.
    await writeFile(`${file}.next`, `${offset}\n`);
    await rename(`${file}.next`, file);
  };
  await set('+0');
  const { process: child } = await scene.start({
    env: {
      LD_PRELOAD: faketimeLibrary,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      // Setting the clock does not change the monotonic clock.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  return {
    authority: scene.at(),
    async inject() {
      const seen: string[] = [];
      for (const [offset, name] of [
        ['+1d', 'failing.test'],
        // Without TLS session resumption, so that each handshake checks the certificate against the clock.
        ['-1d', 'cold.test'],
      ] as const) {
        await set(offset);
        seen.push(`${offset} ${await fetchCode(scene.sidecar, scene.at(name))}`);
        await child.record(({ time }) => isDayAway(String(time), offset));
      }
      return seen.join(', ');
    },
    remove: () => set('+0'),
  };
}

/** Checks that the clock of the proxy itself has jumped. */
function isDayAway(time: string, offset: string): boolean {
  const hours = (Date.parse(time) - Date.now()) / 3_600_000;
  return offset === '+1d' ? hours > 23 : hours < -23;
}

async function arrangeStarved(scene: ChaosScene): ReturnType<Fault['arrange']> {
  await scene.start();
  const busy: ChildProcess[] = [];
  return {
    authority: scene.at(),
    async inject() {
      for (let i = 0; i < 2 * availableParallelism(); i += 1)
        busy.push(spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }));
      await Promise.all(busy.map((child) => once(child, 'spawn')));
      const codes = [];
      for (let i = 0; i < STARVED_ASKS; i += 1) codes.push(await fetchCode(scene.sidecar, scene.at()));
      return tally(codes);
    },
    remove: () => endAll(busy),
    close: () => endAll(busy),
  };
}

async function endAll(children: ChildProcess[]): Promise<void> {
  for (const child of children.splice(0)) {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }
}

/** More concurrent data than the heap can hold, and leaf certificates for names that are used once. */
async function arrangePressure(scene: ChaosScene): ReturnType<Fault['arrange']> {
  await scene.start();
  const body = Buffer.alloc(LARGE_BYTES, 'x');
  return {
    authority: scene.at(),
    async inject() {
      scene.host.behave(async ({ send, end }) => {
        await send(response(200, [['Connection', 'close']], body));
        end();
      });
      const large = Array.from({ length: LARGE_AT_ONCE }, () => download(scene));
      const codes = await Promise.all(large);
      scene.host.recover();
      for (let i = 0; i < NEW_NAMES; i += 1) codes.push(await askNewName(scene, i));
      return tally(codes);
    },
    remove: () => scene.host.recover(),
  };
}

async function download(scene: ChaosScene): Promise<string> {
  await using client = await openTunnel(scene.sidecar, scene.at());
  await client.send(`GET / HTTP/1.1\r\nHost: ${scene.at()}\r\n\r\n`);
  const { status } = await client.readHead();
  const { length } = await client.readBody();
  return length === LARGE_BYTES ? String(status) : `${status} cut`;
}

/** Only the handshake: it creates a leaf certificate, whatever happens to the request. */
async function askNewName(scene: ChaosScene, i: number): Promise<string> {
  const authority = scene.at(`n${i}.called.test`);
  await using client = await openTunnel(scene.sidecar, authority);
  return client.socket.readyState === 'open' ? '200' : 'closed';
}

function tally(codes: readonly string[]): string {
  const counts = Map.groupBy(codes, (code) => code);
  return [...counts].map(([code, all]) => `${all.length} x ${code}`).join(', ');
}
