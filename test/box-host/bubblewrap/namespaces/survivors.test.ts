import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { expect, it } from 'vitest';
import { endSurvivors } from '../../../../src/box-host/bubblewrap/namespaces/survivors.ts';
import { missing, titled } from '../../isolation.ts';
import { createTestBoxes, startInBox } from '../test-boxes.ts';

/** How many processes of the host are in this network namespace. */
function countIn(link: string): number {
  const links = readdirSync('/proc').map((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/ns/net`);
    } catch {
      return undefined;
    }
  });
  return links.filter((one) => one === link).length;
}

it.skipIf(missing !== undefined)(titled('nothing is left in the network namespace of a box'), async () => {
  await using made = await createTestBoxes();
  const box = await made.open('one');
  await startInBox(box, 'setsid sleep 600 & echo; sleep 600');
  const descriptor = box.network.namespaces.net ?? -1;
  const link = readlinkSync(`/proc/self/fd/${descriptor}`);
  expect(countIn(link)).toBeGreaterThan(1);
  await endSurvivors(descriptor);
  expect(countIn(link)).toBe(0);
});

it('the network namespace of the host is never emptied', async () => {
  const own = openSync('/proc/self/ns/net', 'r');
  await expect(endSurvivors(own)).rejects.toThrow(/that of the host/);
  closeSync(own);
});
