// The stage `address`: which addresses may be dialled under which setting. The ledger replaces the network.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DialLedger, openDialLedger } from '../../invariants/dial-ledger.ts';
import { play, violations } from './address-driver.ts';
import { lookupRows } from './rows-lookup.ts';
import { ownRows } from './rows-own.ts';
import { portRows } from './rows-port.ts';
import { rangeRows } from './rows-range.ts';
import { spellingRows } from './rows-spelling.ts';

let ledger: DialLedger;
beforeAll(async () => {
  ledger = await openDialLedger();
});
afterAll(() => ledger[Symbol.dispose]());

const rows = [...rangeRows, ...ownRows, ...spellingRows, ...lookupRows, ...portRows];

it.each(rows)('$id', async ({ script, expect: expected }) => {
  expect(violations(expected, await play(script, ledger))).toEqual([]);
});

it('a bystander is still dialled', async () => {
  const script = { by: 'tunnel', to: ['bystander.test:443'], under: ['default'] } as const;
  const seen = { default: ['lookup bystander.test', 'dial 192.0.43.7:443'] };
  expect(violations({ seen }, await play(script, ledger))).toEqual([]);
});
