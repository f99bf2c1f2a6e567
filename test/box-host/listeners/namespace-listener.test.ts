// A listener is opened inside a namespace, and the process that opened it has ended before anybody uses it.
import { createServer } from 'node:net';
import { readFileSync, readdirSync } from 'node:fs';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { openNamespaceListener } from '../../../src/box-host/listeners/namespace-listener.ts';
import { createNetworkNamespace } from '../../support/network-namespace.ts';

const AT = { host: '127.0.0.1', port: 3128 } as const;

/** The ports on which something listens in the namespace. */
async function portsIn(
  space: Awaited<ReturnType<typeof createNetworkNamespace>>,
): Promise<readonly number[]> {
  const { stdout } = await space.run('cat', ['/proc/net/tcp']);
  const rows = stdout.trim().split('\n').slice(1);
  return rows.map((row) => Number.parseInt(/:([0-9A-F]{4}) /.exec(row)?.[1] ?? '', 16));
}

function childrenOf(pid: number): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return Number(readFileSync(`/proc/${name}/stat`, 'latin1').split(') ')[1]?.split(' ')[1]) === pid;
      } catch {
        return false; // it has just ended
      }
    })
    .map((name) => readFileSync(`/proc/${name}/cmdline`, 'latin1'));
}

describe('a listener in a namespace', () => {
  it('exists there alone, and nothing of the helper is left', async () => {
    await using space = await createNetworkNamespace();
    const listener = await openNamespaceListener(space, AT);
    expect(childrenOf(process.pid).filter((line) => line.includes('_handle'))).toEqual([]);
    expect(await portsIn(space)).toEqual([3128]);
    listener.close();
    expect(await portsIn(space)).toEqual([]);
  });

  it('accepts for the one that serves it, also what was connected before', async () => {
    await using space = await createNetworkNamespace();
    const listener = await openNamespaceListener(space, AT);
    const request = space.run('curl', ['-sS', '--max-time', '20', 'http://127.0.0.1:3128/']);
    const server = createServer((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved'));
    });
    server.listen(listener.handle);
    await once(server, 'listening');
    expect((await request).stdout).toBe('served');
    server.close();
  });

  it('cannot be opened twice on one port', async () => {
    await using space = await createNetworkNamespace();
    const listener = await openNamespaceListener(space, AT);
    await expect(openNamespaceListener(space, AT)).rejects.toThrow('EADDRINUSE');
    listener.close();
  });

  it('says why a namespace cannot be entered, or the program is missing', async () => {
    const entering = (...command: readonly string[]) => ({ enter: () => ({ command, descriptors: [] }) });
    await expect(openNamespaceListener(entering('nsenter', '--net=/dev/null', 'true'), AT)).rejects.toThrow(
      /^the network namespace of the box cannot be entered: nsenter: /,
    );
    await expect(openNamespaceListener(entering('/nonexistent/nsenter'), AT)).rejects.toThrow(
      /cannot be run \(ENOENT\): install the Debian package util-linux$/,
    );
  });

  it('is an error if its helper does not respond, and the helper is ended', async () => {
    const hanging = { enter: () => ({ command: ['/bin/sh', '-c', 'exec sleep 618'], descriptors: [] }) };
    await expect(openNamespaceListener(hanging, AT, 50)).rejects.toThrow(/its helper does not respond/);
    expect(childrenOf(process.pid).filter((line) => line.includes('618'))).toEqual([]);
  });
});
