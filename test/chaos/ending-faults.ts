// The end of a process or of its start: a wrong or unreadable key stops it with a line that gives the reason, SIGTERM lets
// open exchanges finish, and after SIGKILL the next process finds the last confirmed state.
import { chmod, readFile, readdir, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { SpawnedProcess } from '../support/spawned-process.ts';
import { openTunnel } from './proxy-request.ts';
import { createBystander } from './bystander.ts';
import type { ChaosScene } from './chaos-scene.ts';
import type { Ending } from './fault.ts';
import { recover } from './fault-run.ts';

const KILLS = 5;
const OPEN_EXCHANGES = 20;

export const endingFaults: readonly Ending[] = [
  {
    name: 'local: master key wrong',
    expects: 'exit 2, the key is named, the state is untouched',
    end: endByWrongKey,
  },
  {
    name: 'local: CA key unreadable',
    expects: 'exit 2, the key is named, the state is untouched',
    end: endByUnreadableKey,
  },
  {
    name: 'local: SIGTERM at load',
    expects: `exit 0, ${OPEN_EXCHANGES} of ${OPEN_EXCHANGES} open exchanges finished, bystanders 200`,
    end: endAtLoad,
  },
  {
    name: 'local: SIGKILL while writing',
    expects: `${KILLS} of ${KILLS} starts found the confirmed state`,
    end: endWhileWriting,
  },
];

const RULES = '/v1/sandboxes/other/proxy_config';

async function put(scene: ChaosScene, count: number): Promise<number> {
  const value = `${scene.secrets.opaque}-${count}`;
  const headers = [
    { name: 'X-Count', type: 'plaintext', value: String(count) },
    { name: 'X-Put', type: 'opaque', value },
  ];
  const rules = [{ match_hosts: ['*.put.test'], headers }];
  return (await scene.sidecar.admin('PUT', RULES, { rules })).status;
}

async function startWithState(scene: ChaosScene): Promise<void> {
  await scene.start();
  await scene.sidecar.admin('POST', '/v1/sandboxes', { id: 'other' });
  await put(scene, 0);
}

async function stop(child: SpawnedProcess): Promise<number | null> {
  child.kill('SIGTERM');
  return (await child.exited).code;
}

type EndResult = ReturnType<Ending['end']>;

async function endByWrongKey(scene: ChaosScene): EndResult {
  await startWithState(scene);
  await stop(scene.sidecar.process);
  const file = join(scene.scratch.path, 'state.key');
  const right = await readFile(file);
  return failStart(scene, {
    names: 'state.key',
    damage: () => writeFile(file, randomBytes(32).toString('base64')),
    restore: () => writeFile(file, right),
  });
}

async function endByUnreadableKey(scene: ChaosScene): EndResult {
  await startWithState(scene);
  await stop(scene.sidecar.process);
  const file = join(scene.stateDir, 'secret', 'ca.key');
  return failStart(scene, {
    names: 'ca.key',
    damage: () => chmod(file, 0),
    restore: () => chmod(file, 0o600),
    // Root can read every file unless these capabilities are removed.
    through:
      process.getuid?.() === 0
        ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-all', '--']
        : [],
  });
}

async function failStart(
  scene: ChaosScene,
  key: {
    readonly names: string;
    damage(): Promise<void>;
    restore(): Promise<void>;
    readonly through?: readonly string[];
  },
): EndResult {
  const before = await sealedFiles(scene);
  await key.damage();
  const failed = scene.launch({ through: key.through ?? [] });
  const { code } = await failed.exited;
  const isNamed = failed.stderr.includes(key.names) && !failed.stderr.includes('    at ');
  const isUntouched = (await sealedFiles(scene)) === before;
  await key.restore();
  const startedMs = performance.now();
  await scene.start();
  await recover(scene, scene.at());
  const recoveryMs = performance.now() - startedMs;
  const { status } = await scene.sidecar.admin('GET', RULES);
  const said = isNamed ? 'the key is named' : failed.stderr;
  const state = isUntouched && status === 200 ? 'the state is untouched' : 'the state is lost';
  return { seen: `exit ${code}, ${said}, ${state}`, recoveryMs };
}

async function sealedFiles(scene: ChaosScene): Promise<string> {
  const folder = join(scene.stateDir, 'secret', 'sandboxes');
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sealed'));
  const contents = names.map((name) => readFile(join(folder, name), 'base64'));
  return (await Promise.all(contents)).join('\n');
}

/** Responses in progress at the signal finish normally; bystanders get only the listed codes. */
async function endAtLoad(scene: ChaosScene): EndResult {
  await scene.start();
  const { sidecar } = scene;
  await recover(scene, scene.at());
  const bystander = createBystander(sidecar, `bystander.test:${scene.bystanderHost.origin.port}`);
  const released = Promise.withResolvers<void>();
  scene.host.behave(async ({ send, end }) => {
    await send('HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nhalf');
    await released.promise;
    await send('half');
    end();
  });
  const begun = await Promise.all(Array.from({ length: OPEN_EXCHANGES }, () => beginHalf(scene)));
  sidecar.process.kill('SIGTERM');
  await sidecar.process.record(({ msg }) => msg === 'draining');
  released.resolve();
  const finished = await Promise.all(begun.map((rest) => rest()));
  const { code } = await sidecar.process.exited;
  await bystander.stop();
  scene.host.recover();
  const startedMs = performance.now();
  await scene.start();
  await recover(scene, scene.at());
  const count = finished.filter((text) => text === 'halfhalf').length;
  const allowed = ['200', 'closed', 'no connection', '503 shutting_down'];
  const wrong = [...bystander.seen.keys()].filter((seen) => !allowed.includes(seen));
  const others = wrong.length === 0 ? 'bystanders 200' : `bystanders ${wrong.join(', ')}`;
  return {
    seen: `exit ${code}, ${count} of ${OPEN_EXCHANGES} open exchanges finished, ${others}`,
    recoveryMs: performance.now() - startedMs,
  };
}

/** Reads half a response; returns a function that reads the rest. */
async function beginHalf(scene: ChaosScene): Promise<() => Promise<string>> {
  const client = await openTunnel(scene.sidecar, scene.at());
  await client.send(`GET / HTTP/1.1\r\nHost: ${scene.at()}\r\n\r\n`);
  await client.readHead();
  return async () => {
    const { content } = await client.readBody();
    await client[Symbol.asyncDispose]();
    return content.toString();
  };
}

async function endWhileWriting(scene: ChaosScene): EndResult {
  await startWithState(scene);
  let found = 0;
  let recoveryMs = 0;
  let confirmed = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const { process } = scene.sidecar;
    const stopAt = confirmed + 3 + kill;
    let begun = confirmed;
    while (begun < stopAt) {
      begun += 1;
      const written = put(scene, begun);
      // The process is killed before, during or after its last write.
      if (begun === stopAt) setImmediate(() => process.kill('SIGKILL'));
      if ((await written.catch(() => 0)) === 200) confirmed = begun;
    }
    await process.exited;
    const startedMs = performance.now();
    await scene.start();
    await recover(scene, scene.at());
    recoveryMs = Math.max(recoveryMs, performance.now() - startedMs);
    const { text } = await scene.sidecar.admin('GET', RULES);
    const count = Number(/"value":"(\d+)"/.exec(text)?.[1] ?? -1);
    if (count === confirmed || count === begun) found += 1;
    confirmed = count;
  }
  return { seen: `${found} of ${KILLS} starts found the confirmed state`, recoveryMs };
}
