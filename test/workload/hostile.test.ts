// Programs that take all that a machine has: each is ended with the reason, and others go on beside it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { noCgroups } from '../../src/box-host/cgroup/cgroups.ts';
import type { WorkloadEndReason, WorkloadIsolation, WorkloadSpec } from '../../src/workload/workload.ts';
import { everyNth } from '../support/run-size.ts';
import {
  isMissing,
  openTestWorkloads,
  script,
  type Started,
  type TestWorkloads,
  titled,
} from './test-workloads.ts';

const MIB = 1024 * 1024;

/** Without groups, the limits of a process may stop it before anybody sees what it does. */
type Attack = readonly [
  name: string,
  spec: Partial<WorkloadSpec>,
  reason: WorkloadEndReason,
  mayFail: boolean,
];

const attacks: readonly Attack[] = [
  [
    'takes memory without end',
    { ...script('tail /dev/zero'), limits: { memBytes: 64 * MIB } },
    'memory',
    true,
  ],
  [
    'starts processes without end',
    { ...script('f() { f | f & }; f; while :; do sleep 600 & done'), limits: { pids: 64 } },
    'processes',
    true,
  ],
  [
    'takes memory in many processes',
    {
      ...script(`
        for i in 1 2 3 4 5 6 7 8; do
          { /bin/sh -c 'held=$(head -c 20M /dev/zero | tr "\\0" x); sleep 600'; kill -s USR1 $$; } &
        done
        wait`),
      limits: { memBytes: 64 * MIB },
    },
    'memory',
    true,
  ],
  [
    'writes files without end',
    {
      ...script('i=0; while :; do i=$((i+1)); head -c 1M /dev/zero >"$TMPDIR/$i"; done'),
      limits: { diskBytes: 32 * MIB },
    },
    'disk',
    false,
  ],
  [
    'writes one file without end',
    { ...script('exec cat /dev/zero >"$TMPDIR/file"'), limits: { diskBytes: 16 * MIB } },
    'disk',
    false,
  ],
  [
    'writes empty files without end',
    {
      ...script('cd "$TMPDIR"; i=0; while :; do i=$((i+1)); : >$i; done'),
      limits: { diskBytes: 16 * MIB },
    },
    'disk',
    false,
  ],
  ['runs without end', { ...script('while :; do :; done'), timeoutMs: 300 }, 'timeout', false],
  [
    'ignores that it is stopped',
    { ...script('trap "" TERM HUP INT; while :; do sleep 600; done'), timeoutMs: 300 },
    'timeout',
    false,
  ],
];

const machines: readonly (readonly [WorkloadIsolation, string, boolean])[] = [
  ['bubblewrap', '', true],
  ['bubblewrap', ' without groups of the kernel', false],
  ['user', '', true],
  ['user', ' without groups of the kernel', false],
];

/** It goes on. */
async function expectProgress(neighbour: Started): Promise<void> {
  const next = neighbour.lines.length + 3;
  await neighbour.line(String(next));
}

everyNth(machines.length, machines, (some, run) =>
  describe.each(some)('%s%s', run, (isolation, _, hasGroups) => {
    describe.skipIf(isMissing(isolation))(titled('a program', isolation), () => {
      let opened: TestWorkloads;
      let neighbour: Started;

      beforeAll(async () => {
        opened = await openTestWorkloads(
          isolation,
          {},
          hasGroups ? {} : { detectLimits: async () => noCgroups('it is a test') },
        );
        neighbour = await opened.start(script('n=0; while :; do n=$((n+1)); echo $n; sleep 0.1; done'));
      });
      afterAll(() => opened?.[Symbol.asyncDispose]());

      everyNth(attacks.length, attacks, (few, size) =>
        it.each(few)('that %s', size, async (_name, spec, reason, mayFail) => {
          const { ended } = await opened.start(spec);
          const end = await ended;
          if (hasGroups || !mayFail || end.code === 0) expect(end).toMatchObject({ reason });
          await expectProgress(neighbour);
          const { ended: next } = await opened.start(script('exit 4'));
          expect(await next).toMatchObject({ code: 4 });
        }),
      );

      it('that prints without end waits, and others do not', async () => {
        let lines = 0;
        const before = process.memoryUsage().rss;
        const onLine = (): void => void (lines += 1);
        const loud = await opened.start({ ...script('yes "$0" & yes >&2 & yes ""'), onLine });
        await expectProgress(neighbour);
        expect(lines).toBeGreaterThan(0);
        expect(process.memoryUsage().rss - before).toBeLessThan(128 * MIB);
        await loud.workload.stop(0);
      });

      it('that prints a line without end has it cut', { tags: ['long'] }, async () => {
        const cut: boolean[] = [];
        const { lines, ended } = await opened.start({
          ...script('head -c 3000000 /dev/zero | tr "\\0" x; echo; echo next'),
          onLine: (_stream, _line, isTruncated) => void cut.push(isTruncated),
        });
        await ended;
        expect(lines.map(({ length }) => length)).toEqual([16_384, 4]);
        expect(cut).toEqual([true, false]);
      });
    });
  }),
);
