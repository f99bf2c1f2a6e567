// Who listens at an address, in tables as the kernel writes them and for a listener of this process.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { listenersAt, listenersIn } from '../../../src/cli/process/listener-owner.ts';
import { parseAddress } from '../../../src/base/address.ts';

const HEAD =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';
const row = (local: string, state: string, uid: number): string =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 16039013 1 0 100 0 0 10 0`;

describe('the listeners in a table', () => {
  it.each([
    ['127.0.0.1', '0100007F:0C39', [7]],
    ['127.0.0.1', '00000000:0C39', [7]],
    ['127.0.0.1', '0000000000000000FFFF00000100007F:0C39', [7]],
    ['127.0.0.1', '00000000000000000000000000000000:0C39', [7]],
    ['::1', '00000000000000000000000001000000:0C39', [7]],
    ['::1', '00000000000000000000000000000000:0C39', [7]],
    ['127.0.0.1', '0200007F:0C39', []],
    ['127.0.0.1', '0100007F:0C38', []],
    ['::1', '0100007F:0C39', []],
  ])('at %s port 3129, with %s: %j', (host, local, uids) => {
    const address = parseAddress(host);
    if (address === undefined) throw new Error(host);
    expect(
      listenersIn([HEAD, row(local, '0A', 7), row(local, '01', 8), ''].join('\n'), address, 3129),
    ).toEqual(uids);
  });
});

describe.runIf(process.platform === 'linux')('the listeners of this machine', () => {
  it.each(['127.0.0.1', '0.0.0.0', 'localhost'])('are found at %s', async (host) => {
    await using server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await listenersAt(host, port)).toEqual([process.getuid?.()]);
  });

  it('are not looked for on another machine', async () => {
    await using server = createServer();
    await once(server.listen(0, '0.0.0.0'), 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await listenersAt('192.0.2.1', port)).toEqual([]);
  });
});
