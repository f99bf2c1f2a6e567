// Who is silent, who is blocked, and who is only not listened to.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WorkerPulse } from '../../../../src/platform/agent-server/workers/worker-pulse.ts';

const LIMITS = { pingMs: 250, blockedMs: 2_000, killMs: 30_000 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function start() {
  const events = { ping: vi.fn(), onChange: vi.fn(), onDead: vi.fn() };
  const pulse = new WorkerPulse(LIMITS, events);
  pulse.start();
  return { pulse, events };
}

it('a worker that does not respond is blocked, and then dead', () => {
  const { pulse, events } = start();
  vi.advanceTimersByTime(1_750);
  expect(pulse.isBlocked).toBe(false);
  vi.advanceTimersByTime(500);
  expect([pulse.isBlocked, events.onDead.mock.calls.length]).toEqual([true, 0]);
  vi.advanceTimersByTime(28_000);
  expect(events.onDead).toHaveBeenCalled();
  pulse.stop();
});

it('one that is not read is neither, and its response is waited for from then on', () => {
  const { pulse, events } = start();
  pulse.hold(true);
  vi.advanceTimersByTime(60_000);
  expect([pulse.isBlocked, events.onDead.mock.calls.length]).toEqual([false, 0]);
  pulse.hold(false);
  vi.advanceTimersByTime(1_750);
  expect(pulse.isBlocked).toBe(false);
  pulse.receive(1);
  expect(pulse.isSilent).toBe(false);
  vi.advanceTimersByTime(3_000);
  expect(pulse.isBlocked).toBe(true);
  pulse.stop();
});
