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
  /** By a request to its data plane or to a port of it. */
  | 'data_plane_request'
  | 'start_failed'
  | 'stop_requested'
  | 'idle'
  | 'runtime_failed'
  | 'runtime_lost'
  | 'policy_lost'
  | 'delete_requested'
  | 'not_awaited'
  | 'expired'
  /** Its machine has not been seen for so long that it is not waited for. */
  | 'machine_lost'
  | 'removed';

/** `new` and `gone` have no row. */
export type Place = BoxStatus | 'new' | 'gone';

const DELETIONS: readonly MoveReason[] = ['delete_requested', 'not_awaited', 'expired'];
const STARTS: readonly MoveReason[] = ['start_requested', 'data_plane_request'];
const STOPS: readonly MoveReason[] = ['stop_requested', 'idle'];

const MOVES: Readonly<Record<Place, Readonly<Partial<Record<Place, readonly MoveReason[]>>>>> = {
  new: { provisioning: ['created'] },
  provisioning: {
    ready: ['started'],
    failed: ['start_failed', 'machine_lost'],
    ...{ stopped: STOPS, deleting: DELETIONS },
  },
  ready: {
    // It runs no more, or with rules that are older than those that were acknowledged: it serves nobody until it is started again.
    provisioning: ['runtime_lost', 'policy_lost'],
    failed: ['runtime_failed', 'machine_lost'],
    stopped: STOPS,
    deleting: DELETIONS,
  },
  failed: { provisioning: STARTS, stopped: STOPS, deleting: DELETIONS },
  stopped: { provisioning: STARTS, deleting: DELETIONS },
  deleting: { gone: ['removed', 'machine_lost'] },
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
  /** Of the latest document that the runtime has rejected: the same one is rejected again. */
  readonly rejectedVersion: number;
  /** The proxy has the current token. */
  readonly hasToken: boolean;
  /** Of the document of its proxy profile, where the box has another one and this one was not tried in vain. */
  readonly newerProfile: number | undefined;
};

/** `refit`: start again what runs, for what is no part of its policy. `halt`: it runs although the row says that it does not. */
export type Step =
  | { readonly kind: 'start' | 'refit' | 'apply' | 'stop' | 'halt' | 'remove' }
  /** No call of the runtime: the row is wrong about it. */
  | { readonly kind: 'lost'; readonly reason: 'runtime_lost' | 'policy_lost' }
  | { readonly kind: 'fail'; readonly message: string }
  /** No call of the runtime: the document of the box is made anew, with this version of its proxy profile. */
  | { readonly kind: 'adopt'; readonly version: number };

/** Undefined: reality is what the row says. */
export function decideStep(box: BoxState, report: BoxReport | undefined): Step | undefined {
  if (box.status === 'deleting') return { kind: 'remove' };
  const runs = report?.state === 'running';
  const adopt = adoptionOf(box);
  if (box.status === 'failed' && box.desired === 'running') return runs ? { kind: 'halt' } : adopt;
  if (box.desired === 'stopped') {
    if (box.status !== 'stopped') return { kind: 'stop' };
    return runs ? { kind: 'halt' } : adopt;
  }
  // Not with rules that are known to be old.
  if (box.status === 'provisioning') return adopt ?? { kind: 'start' };
  return box.status === 'ready' ? decideForReady(box, report, adopt) : adopt;
}

function decideForReady(
  box: BoxState,
  report: BoxReport | undefined,
  adopt: Step | undefined,
): Step | undefined {
  if (report?.state === 'failed') return { kind: 'fail', message: report.reason ?? NO_REASON };
  if (report?.state !== 'running') return { kind: 'lost', reason: 'runtime_lost' };
  if (report.appliedVersion < box.appliedVersion) return { kind: 'lost', reason: 'policy_lost' };
  if (adopt !== undefined) return adopt;
  if (!box.hasToken) return { kind: 'refit' };
  const known = Math.max(box.appliedVersion, box.rejectedVersion);
  return known < box.policyVersion ? { kind: 'apply' } : undefined;
}

function adoptionOf({ newerProfile: version }: BoxState): Step | undefined {
  return version === undefined ? undefined : { kind: 'adopt', version };
}

const NO_REASON = 'The box ended by itself';
