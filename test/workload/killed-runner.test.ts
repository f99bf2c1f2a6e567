// kill -9 of the process that started workloads: they end by themselves, and the next start removes what is left.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readProcess } from '../../src/workload/limits/process-table.ts';
import type { WorkloadIsolation } from '../../src/workload/workload.ts';
import { openWorkloads, type WorkloadsOptions } from '../../src/workload/workloads.ts';
import { everyNth } from '../support/run-size.ts';
import { cleanEnvironment } from '../support/spawned-process.ts';
import { createOptions, isMissing, titled } from './test-workloads.ts';

/** The processes with this text in their command line. */
function findProcesses(marker: string): readonly number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(marker) && readProcess(Number(name))
        ? [Number(name)]
        : [];
    } catch {
      return [];
    }
  });
}

let count = 0;

/** A runner with two workloads that run. */
async function startRunner({ directory, isolation, users, userRegistry }: WorkloadsOptions, given: object) {
  count += 1;
  // A number of seconds that no other process sleeps.
  const marker = `86${String(process.pid).padStart(7, '0')}.${count}`;
  const options = {
    directory,
    isolation,
    users,
    userRegistry,
    state: `${directory}-state`,
    marker,
    ...given,
  };
  const runner = spawn(
    process.execPath,
    [join(import.meta.dirname, 'killed-runner.ts'), JSON.stringify(options)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: cleanEnvironment(),
    },
  );
  onTestFinished(() => void runner.kill('SIGKILL'));
  const [line] = await once(createInterface(runner.stdout), 'line');
  const { uid, ids } = JSON.parse(String(line)) as { readonly uid?: number; readonly ids: readonly string[] };
  return { runner, marker: `sleep\0${marker}`, uid, ids };
}

const rows: readonly (readonly [WorkloadIsolation, string, object])[] = [
  ['bubblewrap', '', {}],
  ['bubblewrap', ' without groups of the kernel', { hasGroups: false }],
  ['user', '', {}],
  ['user', ' without groups of the kernel', { hasGroups: false }],
  ['none', '', {}],
];

everyNth(rows.length, rows, (some, run) =>
  describe.each(some)('%s%s', run, (isolation, _, given) => {
    it.skipIf(isMissing(isolation))(titled('ends with its runner', isolation), async () => {
      const { options, scratch } = await createOptions(isolation);
      onTestFinished(() => scratch[Symbol.asyncDispose]());
      const { runner, marker, uid, ids } = await startRunner(options, given);
      // The orphan in a session of its own, the one beside the program, the program, and that of the other workload.
      await expect.poll(() => findProcesses(marker)).toHaveLength(4);
      const exited = once(runner, 'exit');
      runner.kill('SIGKILL');
      await exited;
      // Of an orphan in a session of its own, without namespaces and users, nobody knows whose it is.
      const left = isolation === 'none' ? 1 : 0;
      await expect.poll(() => findProcesses(marker).length).toBe(left);
      expect((await readdir(join(options.directory, 'w'))).toSorted()).toEqual(ids.toSorted());
      const workloads = await openWorkloads(options);
      expect(await readdir(join(options.directory, 'w'))).toEqual([]);
      expect(await readdir(join(options.directory, 'private', 'records'))).toEqual([]);
      // The group of the kernel lists it, where there is one.
      expect(findProcesses(marker)).toEqual([]);
      expect((await workloads.userOf('owner'))?.uid).toBe(uid);
      await workloads.close();
    });
  }),
);
