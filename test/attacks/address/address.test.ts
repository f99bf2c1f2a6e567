// The stage `address`: which addresses may be dialled under which setting. The ledger replaces the network.
import { once } from 'node:events';
import { type AddressInfo, type Server, createServer } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DialLedger, openDialLedger } from '../../invariants/dial-ledger.ts';
import { play, violations } from './address-driver.ts';
import { lookupRows } from './rows-lookup.ts';
import { ownRows } from './rows-own.ts';
import { portRows } from './rows-port.ts';
import { rangeRows } from './rows-range.ts';
import { spellingRows } from './rows-spelling.ts';

/** The address that accepts connections. */
const OPEN = '8.8.4.4';

let ledger: DialLedger;
let server: Server;
beforeAll(async () => {
  server = createServer((socket) => socket.on('error', () => {}).end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  ledger = await openDialLedger((address) => (address === OPEN ? port : undefined));
});
afterAll(() => {
  ledger[Symbol.dispose]();
  server.close();
});

const rows = [...rangeRows, ...ownRows, ...spellingRows, ...lookupRows, ...portRows];

it.each(rows)('$id', async ({ script, expect: expected }) => {
  expect(violations(expected, await play(script, ledger))).toEqual([]);
});

it('a bystander is still dialled', async () => {
  const script = { by: 'tunnel', to: ['bystander.test:443'], under: ['default'] } as const;
  const seen = { default: ['lookup bystander.test', 'dial 192.0.43.7:443'] };
  expect(violations({ seen }, await play(script, ledger))).toEqual([]);
});
