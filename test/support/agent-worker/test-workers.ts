// Workers for tests: real processes of a program with methods of its own, limits that are short, and a log that is kept.
import { join } from 'node:path';
import type { WorkerEvent } from '../../../src/agent-worker/protocol/messages.ts';
import type { RunToStart } from '../../../src/agent-worker/protocol/calls.ts';
import { createLog } from '../../../src/base/log.ts';
import type { GraphWorkers, RunOptions } from '../../../src/platform/agent-server/workers/graph-workers.ts';
import { startGraphWorkers } from '../../../src/platform/agent-server/workers/started-workers.ts';
import {
  defaultWorkerLimits,
  type WorkerLimits,
} from '../../../src/platform/agent-server/workers/worker-limits.ts';
import type { PoolParts } from '../../../src/platform/agent-server/workers/worker-pool.ts';

export type TestWorkers = GraphWorkers &
  AsyncDisposable & {
    readonly lines: readonly string[];
    /** Resolves with the message of the next line of the log that matches: each line once. */
    logged(pattern: RegExp): Promise<string>;
  };

export async function startTestWorkers(
  limits: Partial<WorkerLimits> = {},
  deployment: Partial<PoolParts['deployment']> = {},
): Promise<TestWorkers> {
  const lines: string[] = [];
  let seen = 0;
  let wake: (() => void) | undefined;
  const log = createLog('debug', {
    write(line) {
      lines.push(line);
      wake?.();
    },
  });
  const root = import.meta.dirname;
  const workers = await startGraphWorkers({
    deployment: { root, env: {}, load: { root, graphs: {} }, ...deployment },
    limits: { ...defaultWorkerLimits, workers: 1, waitMs: 10_000, backoffMs: [1, 1], ...limits },
    log,
    program: join(root, 'worker-program.ts'),
  });
  return {
    ...workers,
    lines,
    async logged(pattern) {
      for (;;) {
        const index = lines.findIndex((line, i) => i >= seen && pattern.test(line));
        if (index !== -1) {
          seen = index + 1;
          return JSON.parse(lines[index] ?? '{}').msg;
        }
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    [Symbol.asyncDispose]: () => workers.close(),
  };
}

/** A run that does one of the actions of the program. */
export function testRun(
  action: string,
  { metadata = {}, ...options }: Partial<RunOptions> & Pick<Partial<RunToStart>, 'metadata'> = {},
): [RunToStart, RunOptions] {
  const run: RunToStart = {
    ...{ run_id: 'r', thread_id: 't', graph_id: 'g', attempt: 1, config: '{}', hidden: [], metadata },
    ...{ stream_mode: ['custom'], stream_subgraphs: false, durability: 'async', is_resumed: false },
    input: JSON.stringify(action),
  };
  return [
    run,
    {
      cancel: new AbortController().signal,
      checkpoints: { handle: () => Promise.reject(new Error('no checkpoints')) },
      onEvents: () => Promise.resolve(),
      ...options,
    },
  ];
}

export function collect(): { readonly events: WorkerEvent[]; onEvents: RunOptions['onEvents'] } {
  const events: WorkerEvent[] = [];
  let isBusy = false;
  return {
    events,
    async onEvents(batch) {
      if (isBusy) throw new Error('two batches at a time');
      isBusy = true;
      await new Promise(setImmediate);
      events.push(...batch);
      isBusy = false;
    },
  };
}
