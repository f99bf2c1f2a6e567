// What a request waits for after its commit: a box that is ready, a document that its proxy has acknowledged, a box that has stopped
// or is gone. Everything is read from the rows, which the reconciler moves, in this process or in another one.
import { DomainError } from '../../base/domain-error.ts';
import type { Responding } from '../api/route.ts';
import type { BoxChanges } from './box-changes.ts';
import { beginDeletion } from './box-moves.ts';
import { type AwaitedRow, noBox, readAwaited } from './boxes.ts';

/** Clients that wait and do not say how long. */
const DEFAULT_WAIT_S = 30;
/** For what usually takes milliseconds. */
const SETTLE_MS = 10_000;

export type BoxWaiting = {
  /**
   * Throws `timeout`, and `start_failed` for a box that ended `failed`. A box whose name the caller cannot know is deleted when
   * the caller gets no response that names it: a client that tries again would otherwise make a second one.
   */
  untilReady(call: Responding, id: string, seconds: number | null | undefined): Promise<AwaitedRow>;
  /** The box as it is when its proxy has acknowledged its document and token, or cannot do so, or after some seconds. */
  untilApplied(call: Responding, id: string): Promise<AwaitedRow>;
  /** Throws `timeout` where it takes longer than some seconds. */
  untilStopped(call: Responding, id: string): Promise<void>;
  /** Returns after some seconds in any case: the box is shown as `deleting` as long as something of it is left. */
  untilGone(call: Responding, id: string): Promise<void>;
};

export function createBoxWaiting(changes: BoxChanges): BoxWaiting {
  const wait = <T>(call: Responding, id: string, ms: number, look: () => Promise<T | undefined>) =>
    changes.waitFor(id, look, { ms, signal: call.signal });
  return {
    async untilReady(call, id, seconds) {
      const ms = (seconds ?? DEFAULT_WAIT_S) * 1000;
      // Not the whole box: its rules may be large, and this may take minutes.
      const { has_generated_name: hasGeneratedName } = await read(call, id);
      try {
        const settled = await wait(call, id, ms, async () => settledOf(await read(call, id)));
        if (settled === undefined) throw new DomainError('timeout', NOT_IN_TIME);
        return settled;
      } catch (error) {
        const isNamed = error instanceof DomainError && error.kind === 'start_failed';
        if (hasGeneratedName && !isNamed) await abandon(call, id);
        throw error;
      }
    },
    async untilApplied(call, id) {
      const look = async (): Promise<AwaitedRow | undefined> => {
        const box = await read(call, id);
        const isApplied = Math.max(box.applied_version, box.rejected_version) >= box.policy_version;
        const hasToken = box.applied_token_version >= box.token_version;
        return box.status !== 'ready' || (isApplied && hasToken) ? box : undefined;
      };
      return (await wait(call, id, SETTLE_MS, look)) ?? read(call, id);
    },
    async untilStopped(call, id) {
      const look = async (): Promise<true | undefined> => {
        const box = await readAwaited(call.db, id);
        return box === undefined || box.status === 'stopped' || box.desired === 'running' ? true : undefined;
      };
      if ((await wait(call, id, SETTLE_MS, look)) === undefined)
        throw new DomainError('timeout', 'The sandbox is still being stopped');
    },
    async untilGone(call, id) {
      await wait(call, id, SETTLE_MS, async () =>
        (await readAwaited(call.db, id)) === undefined ? true : undefined,
      );
    },
  };
}

const NOT_IN_TIME = 'The sandbox was not ready in time; its status says how it goes on';

function settledOf(box: AwaitedRow): AwaitedRow | undefined {
  const { name, status, status_message: message, desired } = box;
  if (status === 'ready') return box;
  if (status === 'deleting') throw noBox();
  // Its name, because the client may have let us choose it.
  if (status === 'failed')
    throw new DomainError(
      'start_failed',
      `The sandbox ${name} did not start: ${message ?? 'no reason is known'}`,
    );
  if (desired === 'stopped') throw new DomainError('start_failed', `The sandbox ${name} was stopped`);
  return undefined;
}

async function read(call: Pick<Responding, 'db'>, id: string): Promise<AwaitedRow> {
  const box = await readAwaited(call.db, id);
  if (box === undefined) throw noBox();
  return box;
}

async function abandon(call: Responding, id: string): Promise<void> {
  await call.write(async (trx) => {
    // Locked: it may become ready at this moment.
    const box = await trx
      .selectFrom('boxes')
      .select(['id', 'workspace_id', 'machine_id', 'status'])
      .where('id', '=', id)
      .forNoKeyUpdate()
      .executeTakeFirst();
    if (box !== undefined) await beginDeletion(trx, box, { reason: 'not_awaited' });
  });
}
