// The body of a request as a stream that asks for no more than is read, and that can be ended from outside. Leaving it
// does not end the connection, on which the answer is still to go. It must not know what the bytes say.
import type { IncomingMessage } from 'node:http';
import { Unreadable } from './problem.ts';

export type RequestStream = {
  readonly stream: ReadableStream<Uint8Array>;
  /** The reader is told `fault`, now or when he asks for more. False when nobody will: it was read, or left. */
  interrupt(error: Unreadable): boolean;
};

/** `onWanted` is told before the first byte is asked for. */
export function createRequestStream(incoming: IncomingMessage, onWanted: () => void): RequestStream {
  let isOpen = true;
  let early: Unreadable | undefined;
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined;

  const leave = (): void => {
    isOpen = false;
    incoming.off('data', take);
    incoming.pause();
  };
  const fail = (error: Unreadable): void => {
    if (!isOpen) return;
    leave();
    sink?.error(error);
  };
  const take = (piece: Buffer): void => {
    sink?.enqueue(piece);
    incoming.pause();
  };
  const begin = (): void => {
    onWanted();
    incoming.on('data', take);
    incoming.on('end', () => {
      if (!isOpen) return;
      leave();
      sink?.close();
    });
    incoming.on('error', () => fail(cutOff()));
    incoming.on('close', () => fail(cutOff()));
  };
  let hasBegun = false;
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        sink = controller;
        if (early !== undefined) return fail(early);
        if (!hasBegun) begin();
        hasBegun = true;
        // The client may have left before anybody listened; nothing would be told then.
        if (incoming.destroyed) fail(cutOff());
        else incoming.resume();
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
  return {
    stream,
    interrupt(error) {
      if (!isOpen) return false;
      if (sink === undefined) early = error;
      else fail(error);
      return true;
    },
  };
}

function cutOff(): Unreadable {
  return new Unreadable(400, 'The body ended before its end');
}
