// What a worker gets to start a run with: its row, and whose run it is, which the worker must keep to itself.
import type { RunToStart, StoredCheckpoint } from '../../../agent-worker/protocol/calls.ts';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { USER_KEYS, userKeysOf } from '../access/configurable-names.ts';
import type { RunUser } from '../access/run-users.ts';
import type { RunKwargs } from '../runs/run-kwargs.ts';
import type { Claim } from './claims.ts';

export function toRunToStart(
  claim: Claim,
  { user, headers }: RunUser,
  latest?: StoredCheckpoint | null,
): RunToStart {
  const kwargs = JSON.parse(claim.kwargs) as RunKwargs;
  const { configurable } = kwargs.config;
  const hidden: JsonObject = { ...headers, ...userKeysOf(user) };
  return {
    run_id: claim.run_id,
    thread_id: claim.thread_id,
    graph_id: claim.graph_id,
    attempt: claim.attempt,
    is_resumed: claim.attempt > 1,
    ...(kwargs.input === undefined || kwargs.input === null ? {} : { input: JSON.stringify(kwargs.input) }),
    ...(kwargs.command ? { command: JSON.stringify(kwargs.command) } : {}),
    config: JSON.stringify({ ...kwargs.config, configurable: { ...configurable, ...hidden } }),
    // The worker removes them from all that it stores, sends or logs.
    hidden: [...new Set([...USER_KEYS, ...Object.keys(headers)])],
    ...(kwargs.context === undefined ? {} : { context: JSON.stringify(kwargs.context) }),
    metadata: { ...kwargs.config.metadata, run_attempt: claim.attempt },
    stream_mode: kwargs.stream_mode,
    stream_subgraphs: kwargs.subgraphs,
    ...(kwargs.interrupt_before === undefined ? {} : { interrupt_before: kwargs.interrupt_before }),
    ...(kwargs.interrupt_after === undefined ? {} : { interrupt_after: kwargs.interrupt_after }),
    ...(checkpointOf(configurable) ?? {}),
    ...(latest === undefined ? {} : { latest }),
    durability: kwargs.durability ?? 'async',
    ...(kwargs.feedback_keys === undefined ? {} : { feedback_keys: kwargs.feedback_keys }),
  };
}

function checkpointOf(configurable: JsonObject): Pick<RunToStart, 'checkpoint'> | undefined {
  const { checkpoint_id: id, checkpoint_ns: namespace } = configurable;
  if (typeof id !== 'string' && typeof namespace !== 'string') return undefined;
  return {
    checkpoint: {
      ...(typeof id === 'string' ? { checkpoint_id: id } : {}),
      ...(typeof namespace === 'string' ? { checkpoint_ns: namespace } : {}),
    },
  };
}
