// Which isolation workloads have on this machine. Nothing falls back to a weaker one: a platform that isolates programs of its tenants
// must not stop to do so because something is missing after an update.
import { InputError } from '../../base/input-error.ts';
import { checkPrerequisites, explainUserNamespaces } from '../../box-host/bubblewrap/prerequisites.ts';
import type { Cgroups } from '../../box-host/cgroup/cgroups.ts';
import { requireEnterable } from '../spec-check.ts';
import type { WorkloadIsolation } from '../workload.ts';
import type { Isolation } from './isolation.ts';

export type IsolationOptions = {
  readonly wanted: WorkloadIsolation | 'auto';
  /** Others than this machine reach the platform. */
  readonly isExposed: boolean;
  /** Of all workloads; `privateDirectory` is in it. */
  readonly directory: string;
  readonly privateDirectory: string;
  readonly cgroups: Cgroups;
};

const OTHER_WAYS =
  'Or choose the isolation "user" (as root: host users of their own, with the network of the machine), or "none" where all code is trusted';

/** Rejects with an InputError that says what to do. What it returns is not tried out yet. */
export async function chooseIsolation(options: IsolationOptions): Promise<Isolation> {
  const { wanted, cgroups, directory, isExposed } = options;
  if (wanted === 'auto' || wanted === 'bubblewrap') return openIsolated(options);
  if (wanted === 'none' && isExposed)
    throw new InputError(
      'The isolation "none" is for a platform that listens on loopback alone: choose "bubblewrap" or "user", or listen on 127.0.0.1',
    );
  if (wanted === 'user') {
    if (process.getuid?.() !== 0)
      throw new InputError('The isolation "user" needs root: choose "bubblewrap"');
    await requireEnterable(directory).catch(rejectAsInput);
  }
  const { openHostProcesses } = await import('./host-processes.ts');
  return openHostProcesses(wanted, cgroups);
}

async function openIsolated({ privateDirectory, cgroups }: IsolationOptions): Promise<Isolation> {
  const { version, obstacles } = await checkPrerequisites();
  if (obstacles.length > 0) throw new InputError(describeObstacles(obstacles));
  const { openBubblewrap } = await import('./bubblewrap.ts');
  try {
    return await openBubblewrap({ directory: privateDirectory, version, cgroups });
  } catch (error) {
    throw await explainFailure(error);
  }
}

/** Of an attempt to isolate something. */
export async function explainFailure(error: unknown): Promise<InputError> {
  const reason = error instanceof Error ? error.message : String(error);
  return new InputError(describeObstacles([reason, ...(await explainUserNamespaces())]), { cause: error });
}

function describeObstacles(obstacles: readonly string[]): string {
  return `This machine cannot isolate programs by bubblewrap: ${obstacles.join('; ')}. ${OTHER_WAYS}.`;
}

function rejectAsInput(error: unknown): never {
  throw new InputError(error instanceof Error ? error.message : String(error), { cause: error });
}
