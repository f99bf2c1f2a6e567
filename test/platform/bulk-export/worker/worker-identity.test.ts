// A worker is known to have died where its process, and no other one with its number, ran on this machine.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { createWorkerIdentity } from '../../../../src/platform/bulk-export/worker/worker-identity.ts';

const identity = createWorkerIdentity();
if (identity === undefined) throw new Error('this machine has no /proc');
const { own } = identity;
const place = own.split('/').slice(0, -2).join('/');

it('this process lives', () => {
  expect(own.split('/').at(-2)).toBe(String(process.pid));
  expect(identity.isDead(own)).toBe(false);
});

it('a process that has ended is dead', async () => {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  expect(identity.isDead(`${place}/${child.pid}/1`)).toBe(true);
});

it('a process whose number another one has now is dead', () => {
  expect(identity.isDead(`${place}/${process.pid}/1`)).toBe(true);
});

it('of a process of another machine, of another start of it, or of no process, nothing is known', () => {
  for (const worker of [`elsewhere/pid:[1]/${process.pid}/1`, '', place, `${place}/0/1`, `${place}/-1/1`])
    expect(identity.isDead(worker)).toBe(false);
});
