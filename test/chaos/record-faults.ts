// Nobody reads the log, or the disk behind it or behind the state is full. Requests are refused rather than left without
// a record, and a change that cannot be kept is not made.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runToEnd, type LogRecord } from '../support/spawned-process.ts';
import { WireClient } from '../support/wire-client.ts';
import { ask, readCode } from './asking.ts';
import type { ChaosScene } from './chaos-scene.ts';
import type { Fault } from './fault.ts';

const BLOCKED = '503 record_sink_blocked';
/** Each leaves a record of some 800 bytes; the sink holds 4 Mi characters, the pipe and its reader a little more. */
const MAX_REQUESTS = 30_000;
const CLIENTS = 16;
const longPath = `/${'a'.repeat(600)}`;
const POLL_MS = 10;
/** Of the file system behind the records: what the rows before the fault write, and a little more. */
const RECORDS_SIZE = '2m';
const STATE_SIZE = '512k';

export const recordFaults: readonly Fault[] = [
  {
    name: 'local: ENOSPC on records',
    expects: BLOCKED,
    needs: ['namespaces'],
    bystanderMaySee: [BLOCKED],
    arrange: arrangeFullRecords,
  },
  {
    name: 'local: ENOSPC on state',
    expects: '500, the old rules in force, 200',
    isAdded: true,
    needs: ['namespaces'],
    arrange: arrangeFullState,
  },
  {
    name: 'local: blocked log pipe',
    expects: BLOCKED,
    bystanderMaySee: [BLOCKED],
    async arrange(scene) {
      const { process } = await scene.start();
      return {
        authority: scene.at(),
        async strike() {
          process.holdOutput();
          await fillSink(scene);
          return ask(scene.sidecar, scene.at());
        },
        heal: () => process.readOutput(),
      };
    },
  },
];

/** Requests that fail, and cost little but their records, until one is refused for its record. */
async function fillSink(scene: ChaosScene): Promise<void> {
  let isBlocked = false;
  let left = MAX_REQUESTS;
  const askAgain = async (): Promise<void> => {
    await using client = await WireClient.connect(scene.sidecar.port);
    while (!isBlocked && left > 0) {
      left -= 1;
      // Port 9 of the name table's loopback: refused at once, and recorded.
      await client.send(`GET http://a.test:9${longPath} HTTP/1.1\r\nHost: a.test:9\r\n\r\n`);
      if ((await readCode(client)) === BLOCKED) isBlocked = true;
      // The answer of one that is blocked is the last of its connection.
      if (isBlocked) return;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, askAgain));
  if (!isBlocked) throw new Error(`${MAX_REQUESTS} records found room`);
}

async function arrangeFullRecords(scene: ChaosScene): ReturnType<Fault['arrange']> {
  const disk = await mountDisk(scene, 'records', RECORDS_SIZE);
  const log = join(disk.path, 'records.log');
  scene.keepFile(log);
  await scene.start({
    through: ['sh', '-c', 'exec "$@" >"$0"', log],
    readyLine: () => awaitReady(log),
  });
  return {
    authority: scene.at(),
    async strike() {
      await disk.fill();
      await fillSink(scene);
      return ask(scene.sidecar, scene.at());
    },
    async heal() {
      await disk.enlarge();
    },
    async close() {
      const text = await readFile(log, 'latin1');
      // A write that found room for a part of it goes on where it stopped.
      for (const line of text.split('\n').slice(0, -1)) JSON.parse(line);
      await disk.unmount();
    },
  };
}

async function arrangeFullState(scene: ChaosScene): ReturnType<Fault['arrange']> {
  const disk = await mountDisk(scene, 'state', STATE_SIZE);
  await scene.start({ env: { SALLYPORT_STATE_DIR: disk.path } });
  const put = async (value: string): Promise<number> => {
    const rules = [{ match_hosts: ['*.put.test'], headers: [{ name: 'X-Put', type: 'opaque', value }] }];
    const { status } = await scene.sidecar.admin('PUT', '/v1/sandboxes/other/proxy_config', { rules });
    return status;
  };
  const shown = async (): Promise<string> => (await scene.sidecar.admin('GET', '/v1/sandboxes/other')).text;
  return {
    authority: scene.at(),
    async strike() {
      await scene.sidecar.admin('POST', '/v1/sandboxes', { id: 'other' });
      await put(scene.secrets.opaque);
      const before = await shown();
      await disk.fill();
      const refused = await put(scene.secrets.minted);
      const isOld = (await shown()) === before;
      const code = await ask(scene.sidecar, scene.at());
      return `${refused}, ${isOld ? 'the old rules in force' : 'other rules in force'}, ${code}`;
    },
    async heal() {
      await disk.clear();
      if ((await put(scene.secrets.minted)) >= 300) throw new Error('the state is not written again');
    },
    close: () => disk.unmount(),
  };
}

type Disk = {
  readonly path: string;
  fill(): Promise<void>;
  clear(): Promise<void>;
  enlarge(): Promise<void>;
  unmount(): Promise<void>;
};

/** A file system of a few blocks; it ends with the namespace. */
async function mountDisk(scene: ChaosScene, name: string, size: string): Promise<Disk> {
  const path = (await runToEnd('mktemp', ['-d', join(scene.scratch.path, `${name}-XXXXXX`)])).stdout.trim();
  const mount = async (options: string): Promise<void> => {
    const { code, stderr } = await runToEnd('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path]);
    if (code !== 0) throw new Error(`no file system of its own: ${stderr}`);
  };
  await mount(`size=${size},mode=700`);
  const filler = join(path, 'filler');
  return {
    path,
    async fill() {
      const error = await writeFile(filler, Buffer.alloc(8 << 20)).catch(
        (reason: NodeJS.ErrnoException) => reason,
      );
      if (error?.code !== 'ENOSPC') throw new Error('the file system is not full');
    },
    clear: () => rm(filler),
    // The process still has it open.
    unmount: async () => void (await runToEnd('umount', ['--lazy', path])),
    async enlarge() {
      await rm(filler);
      await mount('remount,size=64m');
    },
  };
}

/** The ready line of a log that is a file. */
async function awaitReady(log: string): Promise<LogRecord> {
  for (;;) {
    const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n').slice(0, -1);
    const records: readonly LogRecord[] = lines.map((line) => JSON.parse(line));
    const ready = records.find(({ msg }) => msg === 'ready');
    if (ready) return ready;
    await delay(POLL_MS);
  }
}
