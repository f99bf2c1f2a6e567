// A worker in this process, at the other end of a stream: tests speak the protocol with it.
import { duplexPair } from 'node:stream';
import type { DispatchedParts } from '../../../src/agent-worker/dispatcher.ts';
import { parseMessage } from '../../../src/agent-worker/protocol/envelope.ts';
import { encodeFrame, FrameReader } from '../../../src/agent-worker/protocol/frame.ts';
import type { Message } from '../../../src/agent-worker/protocol/messages.ts';
import { type Load, serveWorker } from '../../../src/agent-worker/serve-worker.ts';

export const LOADED = { library: '1.0.0', hasAuth: false, hasApp: false } as const;

export type ServedWorker = AsyncDisposable & {
  send(message: object): void;
  /** The next message, but for those that say that a run has begun. */
  next(): Promise<Message>;
  /** All messages that have come. */
  readonly received: readonly Message[];
  /** Messages that have come and were not taken. */
  readonly waiting: readonly Message[];
  /** Resolves or rejects as the worker ends. */
  readonly ended: Promise<void>;
};

export function serveWith(load: Load): ServedWorker {
  const [ours, theirs] = duplexPair();
  const reader = new FrameReader();
  const waiting: Message[] = [];
  const received: Message[] = [];
  let wake: (() => void) | undefined;
  ours.on('data', (piece: Buffer) => {
    for (const payload of reader.read(piece)) {
      const message = parseMessage(payload);
      received.push(message);
      if (message.type !== 'events' || message.events.length > 0) waiting.push(message);
    }
    wake?.();
  });
  const ended = serveWorker(theirs, load);
  ended.catch(() => undefined);
  return {
    waiting,
    received,
    ended,
    send: (message) => void ours.write(encodeFrame(message)),
    async next() {
      for (;;) {
        const message = waiting.shift();
        if (message !== undefined) return message;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    async [Symbol.asyncDispose]() {
      ours.end();
      await ended.catch(() => undefined);
    },
  };
}

/** One that has loaded. */
export async function servedWorker(parts: Partial<DispatchedParts>): Promise<ServedWorker> {
  const worker = serveWith(async () => ({ methods: {}, app: undefined, loaded: LOADED, ...parts }));
  await worker.next();
  worker.send({ type: 'load', deployment: { root: '/', graphs: {} } });
  await worker.next();
  return worker;
}
