// The states of a box, and every move between them with its reasons. What the reconciler does next is decided here from the
// row and from what the runtime reports. Pure.
import type { BoxReport } from '../runtime/contract.ts';

export const boxStatuses = ['provisioning', 'ready', 'failed', 'stopped', 'deleting'] as const;
export type BoxStatus = (typeof boxStatuses)[number];

/** Why a box was moved. `*_requested`: a caller asked for it. */
export type MoveReason =
  | 'created'
  | 'started'
  | 'start_requested'
  | 'start_failed'
  | 'stop_requested'
  | 'idle'
  | 'runtime_failed'
  | 'runtime_lost'
  | 'policy_lost'
  | 'delete_requested'
  | 'not_awaited'
  | 'expired'
  | 'removed';

/** `new` and `gone` have no row. */
export type Place = BoxStatus | 'new' | 'gone';

const DELETIONS: readonly MoveReason[] = ['delete_requested', 'not_awaited', 'expired'];
const STOPS: readonly MoveReason[] = ['stop_requested', 'idle'];

const MOVES: Readonly<Record<Place, Readonly<Partial<Record<Place, readonly MoveReason[]>>>>> = {
  new: { provisioning: ['created'] },
  provisioning: { ready: ['started'], failed: ['start_failed'], stopped: STOPS, deleting: DELETIONS },
  ready: {
    // It runs no more, or with rules that are older than those that were acknowledged: it serves nobody until it is started again.
    provisioning: ['runtime_lost', 'policy_lost'],
    failed: ['runtime_failed'],
    stopped: STOPS,
    deleting: DELETIONS,
  },
  failed: { provisioning: ['start_requested'], stopped: STOPS, deleting: DELETIONS },
  stopped: { provisioning: ['start_requested'], deleting: DELETIONS },
  deleting: { gone: ['removed'] },
  gone: {},
};

export function isMove(from: Place, to: Place, reason: MoveReason): boolean {
  return MOVES[from][to]?.includes(reason) === true;
}

/** What the decision depends on. */
export type BoxState = {
  readonly status: BoxStatus;
  readonly desired: 'running' | 'stopped';
  /** Of the document that a caller wants. */
  readonly policyVersion: number;
  /** Of the document that the runtime has acknowledged. */
  readonly appliedVersion: number;
  /** The proxy has the current token. */
  readonly hasToken: boolean;
};

/** `refit`: start again what runs, for what is no part of its policy. `halt`: it runs although the row says that it does not. */
export type Step =
  | { readonly kind: 'start' | 'refit' | 'apply' | 'stop' | 'halt' | 'remove' }
  /** No call of the runtime: the row is wrong about it. */
  | { readonly kind: 'lost'; readonly reason: 'runtime_lost' | 'policy_lost' }
  | { readonly kind: 'fail'; readonly message: string };

/** Undefined: reality is what the row says. */
export function decideStep(box: BoxState, report: BoxReport | undefined): Step | undefined {
  if (box.status === 'deleting') return { kind: 'remove' };
  const runs = report?.state === 'running';
  if (box.status === 'failed' && box.desired === 'running') return runs ? { kind: 'halt' } : undefined;
  if (box.desired === 'stopped') {
    if (box.status !== 'stopped') return { kind: 'stop' };
    return runs ? { kind: 'halt' } : undefined;
  }
  if (box.status === 'provisioning') return { kind: 'start' };
  if (box.status !== 'ready') return undefined;
  if (report?.state === 'failed') return { kind: 'fail', message: report.reason ?? NO_REASON };
  if (report?.state !== 'running') return { kind: 'lost', reason: 'runtime_lost' };
  if (report.appliedVersion < box.appliedVersion) return { kind: 'lost', reason: 'policy_lost' };
  if (!box.hasToken) return { kind: 'refit' };
  return box.appliedVersion < box.policyVersion ? { kind: 'apply' } : undefined;
}

const NO_REASON = 'The box ended by itself';
