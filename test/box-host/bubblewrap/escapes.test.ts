// Attempts to leave a box, each of which works outside: what fails inside fails because of the box.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { missing, titled } from '../isolation.ts';
import { createTestBoxes, runProgram, startInBox, type TestBoxes } from './test-boxes.ts';

const SECRET = 'a-secret-of-the-host';
const ATTEMPTS = join(import.meta.dirname, 'escapes', 'attempts.py');
const PYTHON = '/usr/bin/python3';

type Outcome = { readonly name: string; readonly escaped: boolean; readonly detail: string };
type Outcomes = ReadonlyMap<string, Outcome>;

/** Outside, in a network namespace of the test: no packet leaves this machine for these addresses. */
const inNetwork: readonly string[] = [
  'the metadata address',
  'a private network',
  'a public address by IPv6',
  'the proxy of another box',
  'another address',
];

/** Outside, in the network of the host. The last ones change what the others need. */
const onHost: readonly string[] = [
  'the loopback of the host',
  'the loopback of the host by another name',
  'the loopback of the host by IPv6',
  'the loopback of the host by a mapped address',
  'every address of the host',
  'UDP to the host',
  'a DNS server of the host',
  'a unix socket of the host',
  'an abstract unix socket of the host',
  'a raw socket',
  'a raw IPv6 socket',
  'a packet socket',
  'the network namespace of the host',
  'a user namespace',
  'a user namespace by clone',
  'a user namespace by clone3',
  'a mount namespace',
  'a mount',
  'a clone of the mounts',
  'a file system context',
  'another root',
  'a file by its handle',
  'a file of the host',
  'a file of the host through dots',
  'a file of the host through a link',
  'a file of the host through a process of it',
  'a device node',
  'a disk of the host',
  'shared memory of the host by path',
  'shared memory of the host by key',
  'the groups of the host',
  'the core pattern of the host',
  'the log of the kernel',
  'a setuid program',
  'a setuid program of its own',
  'file capabilities',
  'a capability',
  'the user root',
  'a higher priority',
  'another host name',
  'a key',
  'the keyring of the session',
  'a signal to a process of the host',
  'the tracing of a process of the host',
  'the memory of a process of the host',
  'the environment of a process of the host',
  'a descriptor of a process of the host',
  'an inherited descriptor',
  'a BPF map',
  'a performance event',
  'an io uring',
  'a handler of missing pages',
  'a fixed address space',
  'a comparison of kernel objects',
  'a writable usr',
  'a write to usr',
  'a hard link to a program of the host',
  'the removal of a mount',
];

function parseOutcomes(text: string): Outcomes {
  const lines = text.split('\n').filter((line) => line.startsWith('{'));
  return new Map(lines.map((line) => JSON.parse(line) as Outcome).map((one) => [one.name, one]));
}

describe.skipIf(missing !== undefined)(titled('from inside of a box'), () => {
  let scratch: Scratch;
  let made: TestBoxes;
  let host: Awaited<ReturnType<typeof createHost>>;
  let inside: Outcomes;
  let outside: Outcomes;

  beforeAll(async () => {
    scratch = await createScratch();
    host = await createHost(scratch.path);
    made = await createTestBoxes({
      attempts: ATTEMPTS,
      setuid: host.setuidProgram,
      capable: host.capableProgram,
    });
    const [other, box] = [await made.open('other'), await made.open('one')];
    await startInBox(other, serverScript(8080));
    const params = {
      ...host.params,
      otherBoxPort: 8080,
      setuidProgram: '/.sallyport/setuid',
      capableProgram: '/.sallyport/capable',
    };
    const names = [...onHost, ...inNetwork, 'a service of another box'];
    const run = await runProgram(box, [
      '/bin/sh',
      '-c',
      'exec >&3 2>&1 3>&-; exec "$@"',
      'sh',
      ...[PYTHON, '/.sallyport/attempts', JSON.stringify(params), ...names],
    ]);
    inside = parseOutcomes(run.output);
    outside = new Map([...(await runOnHost(host)), ...(await runInNetwork(host))]);
  });

  afterAll(async () => {
    await made?.[Symbol.asyncDispose]();
    await host?.[Symbol.asyncDispose]();
    await scratch?.[Symbol.asyncDispose]();
  });

  it.each([...onHost, ...inNetwork].map((name) => [name]))('%s is not reached, and outside it is', (name) => {
    expect(outside.get(name)).toMatchObject({ escaped: true });
    expect(inside.get(name)).toMatchObject({
      escaped: false,
      detail: expect.stringMatching(/Error|killed|no effect/),
    });
  });

  it('a service of another box is not reached, and in that box it is', async () => {
    expect(inside.get('a service of another box')).toMatchObject({ escaped: false });
    const params = JSON.stringify({ otherBoxPort: 8081 });
    const box = await made.open('third');
    const { output } = await runProgram(box, [
      '/bin/sh',
      '-c',
      `exec >&3 2>&1 3>&-; ${serverScript(8081, 'background')}; exec "$@"`,
      'sh',
      ...[PYTHON, '/.sallyport/attempts', params, 'a service of another box'],
    ]);
    expect(parseOutcomes(output).get('a service of another box')).toMatchObject({ escaped: true });
  });

  it('at least 40 of them are counted', () => {
    expect(onHost.length + inNetwork.length + 1).toBeGreaterThanOrEqual(40);
  });
});

/** Sends `reached` to whoever connects, after a line that says that it listens. */
function serverScript(port: number, mode: 'foreground' | 'background' = 'foreground'): string {
  const code = [
    'import socket, os',
    `s = socket.create_server(("127.0.0.1", ${port}))`,
    ...(mode === 'background' ? ['if os.fork() != 0: os._exit(0)'] : ['print("", flush=True)']),
    'while True:',
    '    c = s.accept()[0]',
    '    c.send(b"reached")',
    '    c.close()',
  ].join('\n');
  return `${PYTHON} -c '${code}'`;
}

/** What of the host an attempt could reach. */
async function createHost(directory: string) {
  const tcp = createServer((socket) => socket.end('reached')).listen(0, '::');
  const unixSocket = join(directory, 'admin.sock');
  const unix = createServer((socket) => socket.end('reached')).listen(unixSocket);
  const abstractSocket = `sallyport-test-${process.pid}`;
  const abstract = createServer((socket) => socket.end('reached')).listen(`\0${abstractSocket}`);
  const udp = createSocket('udp4', (message, from) =>
    udp.send(Buffer.concat([message, Buffer.from('reached')]), from.port, from.address),
  );
  udp.bind(0, '127.0.0.1');
  await Promise.all(
    [tcp, unix, abstract, udp].map((server: Server | UdpSocket) => once(server, 'listening')),
  );
  const secretFile = join(directory, 'secret');
  writeFileSync(secretFile, SECRET);
  const sharedMemory = `sallyport-test-${process.pid}`;
  writeFileSync(`/dev/shm/${sharedMemory}`, SECRET);
  const sharedMemoryKey = 0x5a11 + process.pid;
  execFileSync(PYTHON, [
    '-c',
    `import ctypes; assert ctypes.CDLL(None).shmget(${sharedMemoryKey}, 4096, 0o1600) >= 0`,
  ]);
  chmodSync(directory, 0o711);
  const setuidProgram = join(directory, 'id');
  copyFileSync('/usr/bin/id', setuidProgram);
  chmodSync(setuidProgram, 0o4755);
  const capableProgram = join(directory, 'cat');
  copyFileSync('/usr/bin/cat', capableProgram);
  chmodSync(capableProgram, 0o755);
  // VFS_CAP_REVISION_2, effective; CAP_NET_RAW.
  const capability = '0100000200200000000000000000000000000000';
  execFileSync(PYTHON, [
    '-c',
    `import os; os.setxattr("${capableProgram}", "security.capability", bytes.fromhex("${capability}"))`,
  ]);
  const sleeper: ChildProcess = spawn('sleep', ['600'], { env: { SECRET } });
  const disk =
    readdirSync('/dev').find((name) => /^(vd|sd|xvd|nvme|loop)[a-z0-9]*$/.test(name)) ?? 'loop-control';
  return {
    setuidProgram,
    capableProgram,
    secretFile,
    params: {
      tcpPort: (tcp.address() as AddressInfo).port,
      udpPort: udp.address().port,
      farPort: 8099,
      unixSocket,
      abstractSocket,
      secret: SECRET,
      secretFile,
      hostPid: sleeper.pid,
      handlePath: '/usr',
      linkTarget: '/usr/escape-link',
      disk: `/dev/${disk}`,
      sharedMemory,
      sharedMemoryKey,
      cgroup: '/sys/fs/cgroup/pids',
      setuidProgram,
      capableProgram,
    },
    async [Symbol.asyncDispose]() {
      sleeper.kill('SIGKILL');
      rmSync(`/dev/shm/${sharedMemory}`, { force: true });
      execFileSync('ipcrm', ['-M', String(sharedMemoryKey)]);
      udp.close();
      for (const server of [tcp, unix, abstract]) server.close();
    },
  };
}

type Host = Awaited<ReturnType<typeof createHost>>;

/** As root, with mounts and a host name of their own: a success there changes nothing here. */
async function runOnHost({ params, secretFile }: Host): Promise<Outcomes> {
  const script = `
    mkdir "$1.upper"; mount -t tmpfs tmpfs "$1.upper"; mkdir "$1.upper/u" "$1.upper/w"
    mount -t overlay -o "lowerdir=/usr,upperdir=$1.upper/u,workdir=$1.upper/w" usr /usr
    mount -o bind,remount,ro /usr
    shift; exec 9<"$1"; shift; exec "$@"`;
  const given = { ...params, handlePath: '/etc' };
  const command = ['/bin/sh', '-e', '-c', script, 'sh', secretFile, secretFile];
  const args = ['--mount', '--uts', '--propagation', 'private', ...command, PYTHON, ATTEMPTS];
  return outcomesOf(['unshare', ...args, JSON.stringify(given), ...onHost]);
}

/** The addresses belong to a loopback of the test. */
async function runInNetwork({ params }: Host): Promise<Outcomes> {
  const servers = [
    ['169.254.169.254', 8099],
    ['10.11.12.13', 8099],
    ['2001:db8::13', 8099],
    ['127.0.0.1', 3128],
  ];
  const code = [
    'import json, os, socket, sys',
    'for host, port in json.loads(sys.argv[1]):',
    '    family = socket.AF_INET6 if ":" in host else socket.AF_INET',
    '    s = socket.create_server((host, port), family=family)',
    '    if os.fork() == 0:',
    '        while True:',
    '            c = s.accept()[0]; c.send(b"reached"); c.close()',
    'os.execv(sys.argv[2], sys.argv[2:])',
  ].join('\n');
  const script = `
    ip link set lo up
    ip addr add 169.254.169.254/32 dev lo; ip addr add 10.11.12.13/32 dev lo
    ip -6 addr add 2001:db8::13/128 dev lo nodad
    exec "$@"`;
  const attempts = [PYTHON, ATTEMPTS, JSON.stringify(params), ...inNetwork];
  const served = [PYTHON, '-c', code, JSON.stringify(servers), ...attempts];
  // The servers end with the first process of their namespace.
  const kinds = ['--net', '--pid', '--fork', '--kill-child'];
  return outcomesOf(['unshare', ...kinds, '/bin/sh', '-e', '-c', script, 'sh', ...served]);
}

async function outcomesOf([program = '', ...args]: readonly string[]): Promise<Outcomes> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  await once(child, 'close');
  return parseOutcomes(text);
}
