// Starts what a run compares: the direct way, the bare relay, Sallyport in its ways of handling a host, and the peers that
// are installed.
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Children } from './children.ts';
import type { Peer } from './peer.ts';
import { type Sallyport, startSallyport } from './sallyport.ts';
import { type Scene, PROXY_CORE, hosts, withOutput } from './scene.ts';
import { type Subject, throughProxy, throughReverseProxy } from './subject.ts';

const RELAY_DEADLINE_MS = 10_000;

export function sallyportSubjects(scene: Scene, { child, port, caPem }: Sallyport): readonly Subject[] {
  const ours = { pid: child.pid, protocols: ['h1'], isForward: true } as const;
  return [
    {
      ...ours,
      name: 'tunnel',
      about: 'Sallyport, a host in no_proxy: bytes forwarded unread',
      target: throughProxy({ port, caPem: scene.caPem, host: hosts.tunnel, folder: '/v0' }),
    },
    {
      ...ours,
      name: 'intercepted',
      about: 'Sallyport, a path that no rule matches: nothing injected',
      target: throughProxy({ port, caPem, folder: '/v0' }),
    },
    {
      ...ours,
      name: 'rule',
      about: 'Sallyport, the header of a rule injected',
      protocols: ['h1', 'h2'],
      target: throughProxy({ port, caPem }),
    },
    {
      ...ours,
      name: 'callback',
      about: 'Sallyport, the header of a callback injected; the endpoint is called once',
      target: throughProxy({ port, caPem, host: hosts.callback }),
    },
  ];
}

/** A Sallyport that writes no record of each exchange, to compare with programs that write none. */
export async function withoutRecords(
  children: Children,
  scene: Scene,
  packageDirectory: string,
): Promise<Subject> {
  const env = { SALLYPORT_LOG_RECORDS: 'false' };
  const options = { packageDirectory, name: 'no-records', env };
  const { child, port, caPem } = await startSallyport(children, scene, options);
  return {
    name: 'no-records',
    about:
      'Sallyport, the header of a rule injected, no record of each exchange (SALLYPORT_LOG_RECORDS=false)',
    pid: child.pid,
    protocols: ['h1', 'h2'],
    isForward: true,
    target: throughProxy({ port, caPem }),
  };
}

export async function startRelay(children: Children, scene: Scene): Promise<Subject> {
  const { originPort, caFile, certFile, keyFile, credential, caPem } = scene;
  const options = JSON.stringify({ originPort, host: hosts.rule, caFile, certFile, keyFile, credential });
  const outputFile = join(scene.directory, 'relay.out');
  const child = withOutput(outputFile, (output) =>
    children.start('relay', [process.execPath, join(import.meta.dirname, 'relay.ts'), options], {
      core: PROXY_CORE,
      output,
    }),
  );
  const endMs = performance.now() + RELAY_DEADLINE_MS;
  let line = '';
  while (!line.endsWith('\n')) {
    if (performance.now() > endMs) throw new Error('the relay does not start');
    await delay(5);
    line = readFileSync(outputFile, 'utf8');
  }
  const { port } = JSON.parse(line) as { port: number };
  return {
    name: 'relay',
    about: 'the floor: a relay on node:tls that replaces one header and does nothing else',
    pid: child.pid,
    protocols: ['h1'],
    isForward: false,
    target: throughReverseProxy({ port, caPem }),
  };
}

export type Started = {
  readonly subjects: readonly Subject[];
  readonly versions: Readonly<Record<string, string>>;
  /** One line for each peer that is not installed or does not start. */
  readonly skipped: readonly string[];
};

export async function startPeers(
  peers: readonly Peer[],
  children: Children,
  scene: Scene,
  say: (line: string) => void,
): Promise<Started> {
  const subjects: Subject[] = [];
  const versions: Record<string, string> = {};
  const skipped: string[] = [];
  for (const peer of peers) {
    const program = peer.find();
    if (program === undefined) {
      skipped.push(`${peer.name}: not installed; ${peer.install}`);
      continue;
    }
    try {
      subjects.push(await peer.start(program, children, scene));
      versions[peer.name] = program.version;
    } catch (error) {
      skipped.push(`${peer.name}: ${(error as Error).message}`);
    }
  }
  skipped.forEach((line) => say(`without ${line}`));
  return { subjects, versions, skipped };
}
