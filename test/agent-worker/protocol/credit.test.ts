import { describe, expect, it } from 'vitest';
import { ReceiveCredit, SendCredit, WINDOW_BYTES } from '../../../src/agent-worker/protocol/credit.ts';

/** Whether a promise is settled once everything that is due has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.then(() => (settled = true));
  await new Promise(setImmediate);
  return settled;
}

describe('who sends', () => {
  it('may send one frame of any length while there is credit, and waits then', async () => {
    const credit = new SendCredit();
    credit.use(WINDOW_BYTES - 1);
    expect(credit.isOpen).toBe(true);
    credit.use(3 * WINDOW_BYTES);
    expect(credit.isOpen).toBe(false);
    const opened = credit.opened();
    credit.grant(3 * WINDOW_BYTES - 1);
    expect(await isSettled(opened)).toBe(false);
    credit.grant(1);
    await opened;
    expect(credit.isOpen).toBe(true);
  });

  it('goes on once the credit is above zero', async () => {
    const credit = new SendCredit();
    credit.use(WINDOW_BYTES);
    const opened = credit.opened();
    expect(await isSettled(opened)).toBe(false);
    credit.grant(1);
    await opened;
    expect(credit.isOpen).toBe(true);
  });

  it('is released when the call ends', async () => {
    const credit = new SendCredit();
    credit.use(WINDOW_BYTES);
    const opened = credit.opened();
    credit.close();
    await opened;
    expect(credit.isOpen).toBe(false);
  });

  it('rejects more than it used', () => {
    const credit = new SendCredit();
    credit.use(10);
    expect(() => credit.grant(11)).toThrow('more credit than was used');
  });
});

describe('who receives', () => {
  it('rejects a frame without credit', () => {
    const credit = new ReceiveCredit();
    credit.receive(WINDOW_BYTES);
    expect(() => credit.receive(1)).toThrow('more bytes than were granted');
  });

  it('grants what was consumed, many frames at once', () => {
    const credit = new ReceiveCredit();
    credit.receive(WINDOW_BYTES);
    expect(credit.consume(1)).toBe(0);
    const granted = credit.consume(WINDOW_BYTES - 1);
    expect(granted).toBe(WINDOW_BYTES);
    credit.receive(WINDOW_BYTES);
  });

  it('never grants so little that who sends stays without credit', () => {
    const sender = new SendCredit();
    const receiver = new ReceiveCredit();
    for (let frame = 0; frame < 10_000; frame += 1) {
      expect(sender.isOpen).toBe(true);
      sender.use(70_001);
      receiver.receive(70_001);
      const granted = receiver.consume(70_001);
      if (granted > 0) sender.grant(granted);
    }
  });
});
