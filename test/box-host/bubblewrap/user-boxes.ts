// Boxes of a box host without root. Started as another user by user-boxes.test.ts; prints what it found as a line of JSON.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { detectCapabilities } from '../../../src/box-host/bubblewrap/capabilities.ts';
import { newBox, openBoxes, runInBox } from './test-boxes.ts';

const PYTHON = '/usr/bin/python3';
const attempts = join(import.meta.dirname, 'escapes', 'attempts.py');
// Against what belongs to the same user: the user of a box is that of the box host here.
const names = [
  'the loopback of the host',
  'a user namespace',
  'a user namespace by clone',
  'a file of the host',
  'a file of the host through dots',
  'a file of the host through a process of it',
  'a signal to a process of the host',
  'the tracing of a process of the host',
  'the memory of a process of the host',
  'the environment of a process of the host',
  'a descriptor of a process of the host',
  'a key',
  'a fixed address space',
];

const capabilities = await detectCapabilities();
const directory = await mkdtemp(join(tmpdir(), 'sallyport-test-'));
const server = createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1');
await once(server, 'listening');
const secret = 'a-secret-of-this-user';
const secretFile = join(directory, 'secret');
await writeFile(secretFile, secret, { mode: 0o600 });
const sleeper = spawn('sleep', ['600'], { env: { SECRET: secret } });
const { port } = server.address() as AddressInfo;
const params = JSON.stringify({ tcpPort: port, hostPid: sleeper.pid, secret, secretFile });
const control = spawn(PYTHON, [attempts, params, ...names], { stdio: ['ignore', 'pipe', 'inherit'] });
const outside = await text(control.stdout);

const boxes = await openBoxes(directory, { attempts });
const box = await boxes.create(newBox('one'));
await box.open();
const inside = await runInBox(box, 'exec "$@"', [PYTHON, '/.sallyport/attempts', params, ...names]);
const status = await runInBox(
  box,
  'id -u; grep -E "^Cap" /proc/self/status | sort -u -k2; echo $(ls /proc/self/fd)',
);
const full = await runInBox(
  box,
  'echo kept >~/file; head -c 30000000 /dev/zero >~/full; stat -c %s ~/full; rm ~/full',
);
await box.stop();
await box.open();
const kept = await runInBox(box, 'cat ~/file');
// The root of the box is its own here: it leaves a link where bwrap mounts.
await boxes.namespace.run('cd "$1/mounts/one/root"; rmdir .sallyport; ln -s /tmp .sallyport', [directory]);
const linked = await runInBox(box, 'ls /.sallyport');
await boxes.remove('one');
await boxes[Symbol.asyncDispose]();
sleeper.kill('SIGKILL');
server.close();
await rm(directory, { recursive: true });
process.stdout.write(
  `${JSON.stringify({
    capabilities,
    names,
    outside,
    inside: inside.output,
    status: status.output,
    full: full.output,
    kept: kept.output,
    linked: linked.output,
  })}\n`,
);
