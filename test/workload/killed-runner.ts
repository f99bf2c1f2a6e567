// A process with workloads that a test kills. Its argument: JSON of the options; prints what the test needs, and waits.
import { createLog } from '../../src/base/log.ts';
import { noCgroups } from '../../src/box-host/cgroup/cgroups.ts';
import { createOwnedDirectory } from '../../src/workload/owned-directory.ts';
import { openWorkloads } from '../../src/workload/workloads.ts';
import { script, startWorkload } from './test-workloads.ts';

const { directory, isolation, users, userRegistry, state, marker, hasGroups, network } = JSON.parse(
  process.argv[2] ?? '',
);
const workloads = await openWorkloads({
  ...{ directory, isolation, users, userRegistry, isExposed: false },
  sidecar: network?.program ?? { command: [], config: {}, env: {} },
  log: createLog('silent', { write: () => undefined }),
  ...(hasGroups === false && { detectLimits: async () => noCgroups('it is a test') }),
});
const user = await workloads.userOf('owner');
await createOwnedDirectory(state, user);
// Orphans, also in sessions of their own.
const text = `(setsid sleep "$1" &) ; sleep "$1" & echo ready; exec sleep "$1"`;
const started = await startWorkload(workloads, {
  ...script(text, marker),
  ...(user && { user }),
  limits: { memBytes: 256 * 1024 * 1024, pids: 64 },
  mounts: [{ source: state, target: state, writable: true }],
  network: network?.policy === undefined ? 'none' : { group: 'one', policy: network.policy },
});
const other = await startWorkload(workloads, script('echo ready; exec sleep "$1"', marker));
await Promise.all([started.line('ready'), other.line('ready')]);
process.stdout.write(
  `${JSON.stringify({ uid: user?.uid, ids: [started.workload.id, other.workload.id] })}\n`,
);
setInterval(() => undefined, 60_000);
