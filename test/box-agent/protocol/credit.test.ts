// Both sides of the credit: what is in flight never exceeds a window, and a peer that cheats is found out.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReceiveCredit, SendCredit, WINDOW_BYTES } from '../../../src/box-agent/protocol/credit.ts';
import { ProtocolError } from '../../../src/box-agent/protocol/frame.ts';

describe('credit', () => {
  it('lets everything through and never holds more than a window', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 200_000 }), { maxLength: 40 }), async (sizes) => {
        const [sender, receiver] = [new SendCredit(), new ReceiveCredit()];
        let inFlight = 0;
        for (const size of sizes) {
          for (let left = size; left > 0; ) {
            const taking = sender.take(left);
            const first = await Promise.race([taking, Promise.resolve(undefined)]);
            if (first === undefined && inFlight > 0) {
              // The consumer catches up.
              const grant = receiver.consume(inFlight);
              inFlight = 0;
              if (grant > 0) sender.grant(grant);
            }
            const count = await taking;
            receiver.receive(count);
            inFlight += count;
            left -= count;
            expect(inFlight).toBeLessThanOrEqual(WINDOW_BYTES);
          }
        }
      }),
    );
  });

  it('ends a sender that waits', async () => {
    const sender = new SendCredit();
    expect(await sender.take(2 * WINDOW_BYTES)).toBe(WINDOW_BYTES);
    const waiting = sender.take(1);
    sender.close();
    expect(await waiting).toBe(0);
  });

  it('is exceeded by a byte too many', () => {
    const receiver = new ReceiveCredit();
    receiver.receive(WINDOW_BYTES);
    expect(() => receiver.receive(1)).toThrow(ProtocolError);
  });

  it('cannot be granted beyond what was used', async () => {
    const sender = new SendCredit();
    expect(() => sender.grant(1)).toThrow(ProtocolError);
    await sender.take(10);
    sender.grant(10);
    expect(() => sender.grant(1)).toThrow(ProtocolError);
  });

  it('is granted in large steps', () => {
    const receiver = new ReceiveCredit();
    const grants = Array.from({ length: 1000 }, () => receiver.consume(100)).filter((grant) => grant > 0);
    expect(grants).toEqual([65_600]);
  });
});
