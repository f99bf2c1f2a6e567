import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { processesOf } from '../../../src/workload/limits/process-table.ts';
import { asUser, endProcesses, userOptions } from '../../../src/workload/users/user-processes.ts';
import { isMissing, titled } from '../test-workloads.ts';

it.each([0, 1, 999, Number.NaN, -1])('the user %s of the system has no workload', (uid) => {
  expect(() => userOptions({ uid, gid: 300_000 })).toThrow(RangeError);
  expect(() => userOptions({ uid: 300_000, gid: uid })).toThrow(RangeError);
});

it.skipIf(isMissing('user'))(
  titled('everything that a user runs is ended, and nothing else', 'user'),
  async () => {
    const uid = 490_000 + (process.pid % 10_000);
    const user = { uid, gid: uid };
    const script = 'setsid sleep 600 & (sleep 600 &) ; echo ready; while :; do sleep 0.01; done';
    const [file = '', ...args] = asUser(user, ['/bin/sh', '-c', script]);
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const neighbour = spawn('sleep', ['600'], { stdio: 'ignore' });
    onTestFinished(() => void neighbour.kill('SIGKILL'));
    await once(child.stdout, 'data');
    const exited = once(child, 'exit');
    await endProcesses(user);
    expect(processesOf(new Set([uid]))).toEqual([]);
    expect((await exited)[1]).toBe('SIGKILL');
    expect(neighbour.exitCode ?? neighbour.signalCode).toBeNull();
  },
);
