// The log is not read, or the disk of the log or of the state is full. Requests are refused rather than served without a
// record, and a change that cannot be stored is not applied.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runToEnd, type LogRecord } from '../support/spawned-process.ts';
import { WireClient } from '../support/wire-client.ts';
import { fetchCode, readCode } from './proxy-request.ts';
import type { ChaosScene } from './chaos-scene.ts';
import type { Fault } from './fault.ts';

const BLOCKED = '503 record_sink_blocked';
/** Each request leaves a record of about 800 bytes; the sink holds 4 Mi characters, the pipe and its reader a little more. */
const MAX_REQUESTS = 30_000;
const CLIENTS = 16;
const longPath = `/${'a'.repeat(600)}`;
const POLL_MS = 10;
/** The size of the file system for the records: slightly more than the requests before the fault write. */
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
        async inject() {
          process.holdOutput();
          await fillSink(scene);
          return fetchCode(scene.sidecar, scene.at());
        },
        remove: () => process.readOutput(),
      };
    },
  },
];

/** Sends cheap requests that fail and leave records, until one is refused because of its record. */
async function fillSink(scene: ChaosScene): Promise<void> {
  let isBlocked = false;
  let left = MAX_REQUESTS;
  const repeatRequests = async (): Promise<void> => {
    await using client = await WireClient.connect(scene.sidecar.port);
    while (!isBlocked && left > 0) {
      left -= 1;
      // Port 9 on loopback by the name table: the connection is refused at once, and recorded.
      await client.send(`GET http://a.test:9${longPath} HTTP/1.1\r\nHost: a.test:9\r\n\r\n`);
      if ((await readCode(client)) === BLOCKED) isBlocked = true;
      // A refusal because of a blocked sink closes the connection.
      if (isBlocked) return;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, repeatRequests));
  if (!isBlocked) throw new Error(`the sink accepted ${MAX_REQUESTS} records`);
}

async function arrangeFullRecords(scene: ChaosScene): ReturnType<Fault['arrange']> {
  const disk = await mountDisk(scene, 'records', RECORDS_SIZE);
  const log = join(disk.path, 'records.log');
  scene.collectFile(log);
  await scene.start({
    through: ['sh', '-c', 'exec "$@" >"$0"', log],
    readyLine: () => awaitReady(log),
  });
  return {
    authority: scene.at(),
    async inject() {
      await disk.fill();
      await fillSink(scene);
      return fetchCode(scene.sidecar, scene.at());
    },
    async remove() {
      await disk.enlarge();
    },
    async close() {
      const text = await readFile(log, 'latin1');
      // A partial write continues where it stopped.
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
    async inject() {
      await scene.sidecar.admin('POST', '/v1/sandboxes', { id: 'other' });
      await put(scene.secrets.opaque);
      const before = await shown();
      await disk.fill();
      const refused = await put(scene.secrets.minted);
      const isOld = (await shown()) === before;
      const code = await fetchCode(scene.sidecar, scene.at());
      return `${refused}, ${isOld ? 'the old rules in force' : 'other rules in force'}, ${code}`;
    },
    async remove() {
      await disk.clear();
      if ((await put(scene.secrets.minted)) >= 300) throw new Error('the state cannot be written again');
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

/** Mounts a file system of a few blocks; it disappears with the namespace. */
async function mountDisk(scene: ChaosScene, name: string, size: string): Promise<Disk> {
  const path = (await runToEnd('mktemp', ['-d', join(scene.scratch.path, `${name}-XXXXXX`)])).stdout.trim();
  const mount = async (options: string): Promise<void> => {
    const { code, stderr } = await runToEnd('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path]);
    if (code !== 0) throw new Error(`cannot mount the file system:  ${stderr}`);
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
    // The process still has the file open.
    unmount: async () => void (await runToEnd('umount', ['--lazy', path])),
    async enlarge() {
      await rm(filler);
      await mount('remount,size=64m');
    },
  };
}

/** The ready line in a log file. */
async function awaitReady(log: string): Promise<LogRecord> {
  for (;;) {
    const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n').slice(0, -1);
    const records: readonly LogRecord[] = lines.map((line) => JSON.parse(line));
    const ready = records.find(({ msg }) => msg === 'ready');
    if (ready) return ready;
    await delay(POLL_MS);
  }
}
