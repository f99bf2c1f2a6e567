// What a thread shows after a run that did not come to its end: the state of its last checkpoint, as the graph reads it.
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { describeBug } from '../../../base/log.ts';
import { userKeysOf } from '../access/configurable-names.ts';
import type { RunUser } from '../access/run-users.ts';
import type { RunKwargs } from '../runs/run-kwargs.ts';
import type { Claim } from './claims.ts';
import type { ThreadOutcome } from './ending.ts';
import type { ExecutionParts } from './execution.ts';

const READING_MS = 10_000;

type State = {
  readonly values?: unknown;
  readonly next?: readonly unknown[];
  readonly tasks?: readonly { readonly id?: unknown; readonly interrupts?: readonly unknown[] }[];
};

/** Without values where the state cannot be read: then the thread keeps those it has. */
export async function readThreadOutcome(parts: ExecutionParts, claim: Claim): Promise<ThreadOutcome> {
  if (claim.is_temporary) return { status: 'idle' };
  const { thread_id, graph_id } = claim;
  try {
    // Without a user where they cannot be read: the state is there all the same.
    const user = await parts.openUser(claim.run_id).catch(() => undefined);
    const text = await parts.workers.call(
      'state.get',
      { graph_id, thread_id, config: JSON.stringify(configOf(claim, user)) },
      {
        signal: AbortSignal.timeout(READING_MS),
        checkpoints: parts.createCheckpoints({ threadId: thread_id, isReadOnly: true }),
      },
    );
    return toOutcome(JSON.parse(text) as State);
  } catch (error) {
    parts.log.warn({ ...describeBug(error), run: claim.run_id }, 'the state of a thread could not be read');
    return { status: 'idle' };
  }
}

/** Of the latest checkpoint: the run may have begun at another one. */
function configOf(claim: Claim, mapping: RunUser | undefined): JsonObject {
  const { config } = JSON.parse(claim.kwargs) as RunKwargs;
  const { checkpoint_id: _, checkpoint_ns: __, checkpoint_map: ___, ...configurable } = config.configurable;
  return { ...config, configurable: { ...configurable, ...userKeysOf(mapping?.user) } };
}

function toOutcome({ values, next = [], tasks = [] }: State): ThreadOutcome {
  const interrupts = tasks.flatMap(({ id, interrupts: found = [] }) =>
    typeof id === 'string' && found.length > 0 ? [[id, found] as const] : [],
  );
  return {
    status: next.length > 0 ? 'interrupted' : 'idle',
    ...(values === undefined ? {} : { values: JSON.stringify(values) }),
    interrupts: JSON.stringify(Object.fromEntries(interrupts)),
  };
}
