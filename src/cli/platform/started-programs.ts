// The programs that a platform starts beside itself: the runner, once there is a deployment, and the export worker, once there is a run of an
// export.
import type { PlatformConfig } from '../../platform/config.ts';
import type { Storage } from '../../platform/storage.ts';
import type { ParentInput } from './parent-input.ts';
import { type ProgramChild, type ProgramChildOptions, startProgramChild } from './program-child.ts';

/**
 * Of Node, for a worker that executes so many runs at once. Most of what it holds are buffers outside of the heap, which collections free:
 * the heap is small enough that those come often, and has a size below which they do not, for they would take half of the CPU.
 */
export function exportWorkerSwitches(runs: number): readonly string[] {
  return [
    '--max-semi-space-size=8',
    '--initial-old-space-size=80',
    `--max-old-space-size=${256 + 128 * runs}`,
  ];
}

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
    ...{ ...rest, input, isNeeded: () => has('export_runs') },
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
