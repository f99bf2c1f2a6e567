// The worker's end of the channel to the server: messages over descriptor 3. When it ends, nobody is left to work for.
import type { Duplex } from 'node:stream';
import { parseMessage } from './protocol/envelope.ts';
import { encodeFrame, FrameReader, ProtocolError } from './protocol/frame.ts';
import type { Message } from './protocol/messages.ts';

/** Sends a message, and returns the length of its frame. Throws FrameTooLarge. */
export type Send = (message: Message) => number;

/** Resolves when the channel has ended. Rejects with a ProtocolError when the server broke the protocol. */
export async function serveChannel(
  socket: Duplex,
  onMessage: (message: Message, bytes: number) => void,
): Promise<void> {
  const reader = new FrameReader();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.on('data', (piece: Buffer) => {
    try {
      for (const payload of reader.read(piece)) onMessage(parseMessage(payload), payload.length);
    } catch (error) {
      reject(error);
      socket.destroy();
      if (!(error instanceof ProtocolError)) throw error;
    }
  });
  // A connection that breaks has ended too: the server is gone.
  socket.once('end', resolve).once('error', resolve).once('close', resolve);
  await promise;
  socket.destroy();
}

export function createSend(socket: Duplex): Send {
  return (message) => {
    const frame = encodeFrame(message);
    if (!socket.destroyed) socket.write(frame);
    return frame.length - 4;
  };
}
