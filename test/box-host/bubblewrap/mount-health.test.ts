import { expect, it } from 'vitest';
import { describeMounts, parseMounts } from '../../../src/box-host/bubblewrap/mount-health.ts';
import { missing, titled } from '../isolation.ts';
import { createTestBoxes } from './test-boxes.ts';

const lines = (id: string, disk: string) =>
  `${id}/disk ${disk}\n${id}/snapshot rw\n${id}/files rw,errors=remount-ro\n${id}/root rw,lowerdir=files:snapshot\n`;

it('the mounts of a box are usable, closed for writes, or gone', () => {
  const mounts = parseMounts(
    lines('a', 'rw,discard,errors=remount-ro') +
      lines('b', 'ro,discard') +
      lines('c', 'rw,emergency_ro') +
      'd/disk rw\n',
  );
  expect(describeMounts('a', mounts)).toBeUndefined();
  for (const id of ['b', 'c']) expect(describeMounts(id, mounts)).toMatch(/closed after an error/);
  for (const id of ['d', 'e']) expect(describeMounts(id, mounts)).toMatch(/not mounted any more/);
});

it.skipIf(missing !== undefined).each([
  ['unmounted its root', 'umount -n -l "$1/root"', /not mounted any more/],
  ['or an error closed its file system', 'mount -n -o remount,ro "$1/disk"', /closed after an error/],
])(titled('a box ends with a reason when somebody %s, and the others go on'), async (_, script, reason) => {
  await using made = await createTestBoxes();
  const [one, other] = [await made.open('one'), await made.open('other')];
  let hasEnded = false;
  void other.ended.then(() => (hasEnded = true));
  await made.boxes.checkMounts();
  await made.boxes.namespace.require('damage', script, ['/run/sallyport-boxes/one']);
  await made.boxes.checkMounts();
  expect(await one.ended).toMatch(reason);
  expect(hasEnded).toBe(false);
  await one.stop();
  await one.open();
  await made.boxes.checkMounts();
  void one.ended.then(() => (hasEnded = true));
  await Promise.resolve();
  expect(hasEnded).toBe(false);
});
