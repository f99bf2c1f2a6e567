import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { MountNamespace } from '../../../../src/box-host/bubblewrap/namespaces/mount-namespace.ts';
import { NetworkNamespace } from '../../../../src/box-host/bubblewrap/namespaces/network-namespace.ts';
import { openNamespaces } from '../../../../src/box-host/bubblewrap/namespaces/open-namespace.ts';
import { missing, titled } from '../../isolation.ts';

async function runWithin(network: NetworkNamespace, script: string): Promise<string> {
  const { command, descriptors } = network.enter(['/bin/sh', '-c', script]);
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit', ...descriptors] });
  const [output] = await Promise.all([text(child.stdout as NodeJS.ReadableStream), once(child, 'exit')]);
  return output;
}

describe.skipIf(missing !== undefined)(titled('the network namespace of a box'), () => {
  it('has loopback, which is up, and nothing else', async () => {
    using mounts = await MountNamespace.open();
    using network = await NetworkNamespace.open(mounts);
    expect(
      await runWithin(network, 'ls /sys/class/net; ip -o link show | cut -d" " -f2-3; ip route'),
    ).toMatch(/lo: <LOOPBACK,UP/);
    expect((await runWithin(network, 'ip -o link show')).trim().split('\n')).toHaveLength(1);
    expect(await runWithin(network, 'ip route; ip -6 route')).not.toMatch(/default|via/);
  });

  it('is another one for each box and not that of the host', async () => {
    using mounts = await MountNamespace.open();
    using one = await NetworkNamespace.open(mounts);
    using two = await NetworkNamespace.open(mounts);
    const names = [
      await runWithin(one, 'readlink /proc/self/ns/net'),
      await runWithin(two, 'readlink /proc/self/ns/net'),
    ];
    expect(new Set([...names.map((name) => name.trim()), readlinkSync('/proc/self/ns/net')]).size).toBe(3);
  });

  it('is kept by its descriptor alone: no process lives in it', async () => {
    using mounts = await MountNamespace.open();
    using network = await NetworkNamespace.open(mounts);
    const name = (await runWithin(network, 'readlink /proc/self/ns/net')).trim();
    const script = 'for p in /proc/[0-9]*; do readlink $p/ns/net; done 2>/dev/null';
    const child = spawn('/bin/sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    expect(await text(child.stdout)).not.toContain(name);
  });

  it('does not reach a listener of the host', async () => {
    using mounts = await MountNamespace.open();
    using network = await NetworkNamespace.open(mounts);
    await using server = createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const script = `bash -c 'cat </dev/tcp/127.0.0.1/${port}' 2>&1`;
    expect(await runWithin(network, script)).toMatch(/refused/);
    const outside = spawn('bash', ['-c', `cat </dev/tcp/127.0.0.1/${port}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    expect(await text(outside.stdout)).toBe('reached');
  });

  it('gives a program no descriptor of a namespace', async () => {
    using mounts = await MountNamespace.open();
    using network = await NetworkNamespace.open(mounts);
    expect((await runWithin(network, 'echo $(ls /proc/self/fd)')).trim()).toBe('0 1 2 3');
  });
});

describe('a namespace', () => {
  it.each(['net', 'mnt'] as const)('is refused when it is that of the host (%s)', async (kind) => {
    const command = ['/bin/sh', '-c', 'echo ready && exec cat'];
    await expect(openNamespaces(command, [kind])).rejects.toThrow(
      `the ${kind} namespace is that of the host`,
    );
  });

  it('that cannot be made is an error with the reason', async () => {
    await expect(openNamespaces(['/bin/sh', '-c', 'echo broken >&2; exit 1'], ['net'])).rejects.toThrow(
      'broken',
    );
    await expect(openNamespaces(['/none'], ['net'])).rejects.toThrow(/ENOENT/);
  });
});

it('a namespace whose maker hangs is an error, and the maker is ended', async () => {
  const making = openNamespaces(['/bin/sh', '-c', 'sleep 600'], ['net'], [], 50);
  await expect(making).rejects.toThrow('/bin/sh does not respond (within 0.05 s)');
});
