import { describe, expect, it } from 'vitest';
import type { BoxReport } from '../../../src/platform/runtime/contract.ts';
import {
  type BoxState,
  type BoxStatus,
  boxStatuses,
  decideStep,
  isMove,
  type MoveReason,
  type Place,
} from '../../../src/platform/sandboxes/box-states.ts';

const places: readonly Place[] = ['new', ...boxStatuses, 'gone'];
const reasons: readonly MoveReason[] = [
  ...(['created', 'started', 'start_requested', 'start_failed', 'stop_requested', 'idle'] as const),
  ...(['runtime_failed', 'machine_lost', 'runtime_lost', 'policy_lost'] as const),
  ...(['delete_requested', 'not_awaited', 'expired', 'removed'] as const),
];

describe('the moves of a box', () => {
  it('are these, and no others', () => {
    const all = places.flatMap((from) =>
      places.flatMap((to) =>
        reasons.filter((reason) => isMove(from, to, reason)).map((reason) => `${from}>${to}:${reason}`),
      ),
    );
    expect(all).toEqual([
      'new>provisioning:created',
      'provisioning>ready:started',
      ...['provisioning>failed:start_failed', 'provisioning>failed:machine_lost'],
      ...['provisioning>stopped:stop_requested', 'provisioning>stopped:idle'],
      ...['delete_requested', 'not_awaited', 'expired'].map((one) => `provisioning>deleting:${one}`),
      ...['ready>provisioning:runtime_lost', 'ready>provisioning:policy_lost'],
      ...['ready>failed:runtime_failed', 'ready>failed:machine_lost'],
      ...['ready>stopped:stop_requested', 'ready>stopped:idle'],
      ...['delete_requested', 'not_awaited', 'expired'].map((one) => `ready>deleting:${one}`),
      'failed>provisioning:start_requested',
      ...['failed>stopped:stop_requested', 'failed>stopped:idle'],
      ...['delete_requested', 'not_awaited', 'expired'].map((one) => `failed>deleting:${one}`),
      'stopped>provisioning:start_requested',
      ...['delete_requested', 'not_awaited', 'expired'].map((one) => `stopped>deleting:${one}`),
      ...['deleting>gone:machine_lost', 'deleting>gone:removed'],
    ]);
  });
});

const state = (status: BoxStatus, given: Partial<BoxState> = {}): BoxState => ({
  ...{ status, desired: 'running', policyVersion: 2, appliedVersion: 2, rejectedVersion: 0 },
  ...{ hasToken: true, newerProfile: undefined },
  ...given,
});
const report = (given: Partial<BoxReport> = {}): BoxReport => ({
  ...{ id: 'a', state: 'running', appliedVersion: 2 },
  ...given,
});

const ADOPT = { kind: 'adopt', version: 7 };

describe('the next step', () => {
  const rows: readonly (readonly [string, BoxState, BoxReport | undefined, unknown])[] = [
    ['a new box is started', state('provisioning'), undefined, { kind: 'start' }],
    ['a box whose start was cut off is started again', state('provisioning'), report(), { kind: 'start' }],
    ['a ready box that runs is left alone', state('ready'), report(), undefined],
    ['a new document is applied', state('ready', { policyVersion: 3 }), report(), { kind: 'apply' }],
    [
      'what was applied and not stored is applied again',
      state('ready', { policyVersion: 3 }),
      report({ appliedVersion: 3 }),
      { kind: 'apply' },
    ],
    [
      'what was rejected is not applied again',
      state('ready', { policyVersion: 3, rejectedVersion: 3 }),
      report(),
      undefined,
    ],
    [
      'a document after one that was rejected is applied',
      state('ready', { policyVersion: 4, rejectedVersion: 3 }),
      report(),
      { kind: 'apply' },
    ],
    ['a changed profile is adopted', state('ready', { newerProfile: 7 }), report(), ADOPT],
    [
      'before a change that is not applied yet, and before a token',
      state('ready', { newerProfile: 7, policyVersion: 3, hasToken: false }),
      report(),
      ADOPT,
    ],
    ['before a box is started', state('provisioning', { newerProfile: 7 }), undefined, ADOPT],
    ['by a failed box', state('failed', { newerProfile: 7 }), undefined, ADOPT],
    ['by a stopped box', state('stopped', { desired: 'stopped', newerProfile: 7 }), undefined, ADOPT],
    [
      'and not before what is wrong with the box is known',
      state('ready', { newerProfile: 7 }),
      undefined,
      { kind: 'lost', reason: 'runtime_lost' },
    ],
    ['nor by a deleted box', state('deleting', { newerProfile: 7 }), report(), { kind: 'remove' }],
    ['a new token is brought', state('ready', { hasToken: false }), report(), { kind: 'refit' }],
    [
      'rules older than those that were acknowledged make a box not ready',
      state('ready'),
      report({ appliedVersion: 1 }),
      { kind: 'lost', reason: 'policy_lost' },
    ],
    [
      'so do no rules at all',
      state('ready'),
      report({ appliedVersion: 0 }),
      { kind: 'lost', reason: 'policy_lost' },
    ],
    [
      'a ready box that is not reported is lost',
      state('ready'),
      undefined,
      { kind: 'lost', reason: 'runtime_lost' },
    ],
    [
      'a ready box that is reported as stopped is lost',
      state('ready'),
      report({ state: 'stopped' }),
      { kind: 'lost', reason: 'runtime_lost' },
    ],
    [
      'a ready box that ended by itself has failed, with its reason',
      state('ready'),
      report({ state: 'failed', reason: 'out of memory' }),
      { kind: 'fail', message: 'out of memory' },
    ],
    ['a failed box stays', state('failed'), undefined, undefined],
    ['a failed box that runs is halted', state('failed'), report(), { kind: 'halt' }],
    ['a ready box is stopped', state('ready', { desired: 'stopped' }), report(), { kind: 'stop' }],
    [
      'so is one that is being started',
      state('provisioning', { desired: 'stopped' }),
      undefined,
      { kind: 'stop' },
    ],
    ['a failed box can be stopped', state('failed', { desired: 'stopped' }), undefined, { kind: 'stop' }],
    [
      'a stopped box stays',
      state('stopped', { desired: 'stopped' }),
      report({ state: 'stopped' }),
      undefined,
    ],
    [
      'a stopped box that runs is halted',
      state('stopped', { desired: 'stopped' }),
      report(),
      { kind: 'halt' },
    ],
    ['a deleted box is removed, whatever it does', state('deleting'), report(), { kind: 'remove' }],
    [
      'also when nothing is known of it',
      state('deleting', { desired: 'stopped' }),
      undefined,
      { kind: 'remove' },
    ],
  ];
  it.each(rows)('%s', (_, box, reported, step) => expect(decideStep(box, reported)).toEqual(step));
});
