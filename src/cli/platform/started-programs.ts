// The programs that a platform starts beside itself: the runner, once there is a deployment, and the export worker, once there is a run of an
// export.
import type { PlatformConfig } from '../../platform/config.ts';
import type { Storage } from '../../platform/storage.ts';
import { exportWorkerSwitches } from './export-worker-heap.ts';
import { type ParentInput, withAwsVariables } from './parent-input.ts';
import { type ProgramChild, type ProgramChildOptions, startProgramChild } from './program-child.ts';

type Starting = Pick<ProgramChildOptions, 'input' | 'program' | 'log' | 'sink'> & {
  readonly api: string | undefined;
  readonly pools: Storage['pools'];
};

/** Returns at once: each begins when it has something to do. */
export function startPrograms(
  config: PlatformConfig,
  { input, api, pools, ...rest }: Starting,
): readonly ProgramChild[] {
  const has = async (table: 'deployments' | 'export_runs'): Promise<boolean> => {
    const rows = pools.long.db.selectFrom(table).select('id').limit(1);
    const open = table === 'deployments' ? rows : rows.where('status', 'in', ['CREATED', 'RUNNING']);
    return (await open.executeTakeFirst()) !== undefined;
  };
  const runner: ProgramChildOptions = {
    ...{ ...rest, input: withPlatformUrl(input, config, api), isNeeded: () => has('deployments') },
    command: 'runner',
    title: 'the runner of deployments',
  };
  const worker: ProgramChildOptions = {
    ...{ ...rest, input: withAwsVariables(input), isNeeded: () => has('export_runs') },
    command: 'export-worker',
    switches: exportWorkerSwitches(config.exports.worker.runs),
    title: 'the export worker',
  };
  return [
    ...(config.runner.isStarted ? [startProgramChild(runner)] : []),
    ...(config.exports.worker.isStarted ? [startProgramChild(worker)] : []),
  ];
}

/** `api`: where this process listens, whatever port that was; undefined: it serves no API. */
function withPlatformUrl(
  input: ParentInput,
  { runner }: PlatformConfig,
  api: string | undefined,
): ParentInput {
  if (runner.platformUrl !== undefined || api === undefined) return input;
  return { ...input, variables: { ...input.variables, SALLYPORT_PLATFORM_RUNNER_PLATFORM_URL: api } };
}
