import { expect, it } from 'vitest';
import { WaitingReaders } from '../../src/box-host/waiting-readers.ts';

it('wakes all that wait, and one whose signal aborts', async () => {
  const readers = new WaitingReaders();
  const leaving = new AbortController();
  const staying = new AbortController();
  const woken: string[] = [];
  const first = readers.wait(leaving.signal).then(() => woken.push('first'));
  const second = readers.wait(staying.signal).then(() => woken.push('second'));
  leaving.abort();
  await first;
  expect(woken).toEqual(['first']);
  readers.wakeAll();
  await second;
  expect(woken).toEqual(['first', 'second']);
});
