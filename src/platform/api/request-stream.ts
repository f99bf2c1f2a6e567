// The body of a request as a stream that asks for no more than is read, and that can be ended from outside. Leaving it
// does not end the connection, on which the answer is still to go. It must not know what the bytes say.
import type { IncomingMessage } from 'node:http';
import { Unreadable } from './problem.ts';

export type RequestStream = {
  readonly stream: ReadableStream<Uint8Array>;
  /** Whether somebody waits for more of it; then the reader is told `fault`. */
  interrupt(fault: Unreadable): boolean;
};

/** `onWanted` is told before the first byte is asked for. */
export function createRequestStream(incoming: IncomingMessage, onWanted: () => void): RequestStream {
  let isOpen = true;
  let isWanted = false;
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined;

  const leave = (): void => {
    isOpen = false;
    incoming.off('data', take);
    incoming.pause();
  };
  const fail = (fault: Unreadable): void => {
    if (!isOpen) return;
    leave();
    sink?.error(fault);
  };
  const take = (piece: Buffer): void => {
    sink?.enqueue(piece);
    isWanted = false;
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
        isWanted = true;
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
    interrupt(fault) {
      if (!isOpen || !isWanted) return false;
      fail(fault);
      return true;
    },
  };
}

function cutOff(): Unreadable {
  return new Unreadable(400, 'The body ended before its end');
}
