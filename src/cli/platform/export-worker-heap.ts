// The heap of an export worker, whose size only switches of its process set. A worker that was started without them replaces itself (same
// PID) by one that has them.
import { stat } from 'node:fs/promises';
import { parsePlatformConfig } from '../../platform/config.ts';
import { exportWorkerCommand } from '../command/export-worker-command.ts';
import { readDocument } from '../document.ts';
import { refuseRuntimeSwitches } from '../process/runtime-switches.ts';
import { PARENT_INPUT_VARIABLE } from './parent-input.ts';
import { parseOptions } from './program-settings.ts';

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

type Started = {
  readonly env: NodeJS.ProcessEnv;
  /** Switches of Node that the process has. */
  readonly execArgv: readonly string[];
  /** To the IPC channel of a parent, which the process that follows would not have. */
  readonly connected?: boolean;
};

/** Whether neither the platform that has started the process nor the operator has chosen the size of its heap, and it may be replaced. */
export function lacksHeapSize({ env, execArgv, connected = false }: Started): boolean {
  if (env[PARENT_INPUT_VARIABLE] !== undefined || connected) return false;
  const switches = [...execArgv, env['NODE_OPTIONS'] ?? ''];
  return !switches.some((text) => HEAP_SIZE.test(text) || PROFILER.test(text));
}

/** A signal of it that is on its way would end the process that follows. */
const PROFILER = /--(?:cpu-)?prof\b/;
const HEAP_SIZE = /--max[-_](?:old[-_]space|heap)[-_]size/;

/** Before secrets are claimed, which the new process could not claim again. Returns where nothing is to be done. */
export async function restartWithHeapSize(args: readonly string[]): Promise<void> {
  if (!lacksHeapSize(process) || process.execve === undefined) return;
  refuseRuntimeSwitches(process.env);
  const runs = await readRuns(args);
  if (runs === undefined) return;
  const switches = [...exportWorkerSwitches(runs), ...process.execArgv];
  process.execve(process.execPath, [process.execPath, ...switches, ...process.argv.slice(1)], process.env);
}

/** At once. Undefined: the settings are invalid, which whoever reads them next says. */
async function readRuns(args: readonly string[]): Promise<number | undefined> {
  const { file, variables } = parseOptions(exportWorkerCommand, args);
  // What a pipe holds could be read once, and no descriptor above 2 survives.
  const isFile = file !== undefined && (await stat(file).catch(() => undefined))?.isFile() === true;
  const document = isFile ? await readDocument(file) : {};
  const parsed = parsePlatformConfig(document, { ...process.env, ...variables });
  return parsed.ok ? parsed.value.exports.worker.runs : undefined;
}
