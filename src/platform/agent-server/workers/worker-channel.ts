// The server's end of the channel to one worker: messages in both directions, read within the budget of a turn.
import type { Duplex } from 'node:stream';
import { parseMessage } from '../../../agent-worker/protocol/envelope.ts';
import { encodeFrame, FrameReader, ProtocolError } from '../../../agent-worker/protocol/frame.ts';
import type { Message } from '../../../agent-worker/protocol/messages.ts';
import type { TurnBudget } from './turn-budget.ts';

export type ChannelEvents = {
  /** May throw a ProtocolError. */
  onMessage(message: Message, bytes: number): void;
  /** Once; with the error of a worker that broke the protocol. */
  onEnd(error: ProtocolError | undefined): void;
};

export class WorkerChannel {
  readonly #socket: Duplex;
  readonly #events: ChannelEvents;
  readonly #budget: TurnBudget;
  #isEnded = false;
  /** Until the next turn. */
  #isWaiting = false;
  #isHeld = false;

  constructor(socket: Duplex, budget: TurnBudget, events: ChannelEvents) {
    this.#socket = socket;
    this.#budget = budget;
    this.#events = events;
    const reader = new FrameReader();
    socket.on('data', (piece: Buffer) => this.#read(reader, piece));
    const end = (): void => this.#end(undefined);
    socket.once('end', end).once('error', end).once('close', end);
  }

  /** Returns the length of the frame. Throws FrameTooLarge. */
  send(message: Message): number {
    const frame = encodeFrame(message);
    if (!this.#isEnded) this.#socket.write(frame);
    return frame.length - 4;
  }

  /** Held: nothing more is read than what has come. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    this.#flow();
  }

  close(): void {
    this.#end(undefined);
  }

  #read(reader: FrameReader, piece: Buffer): void {
    if (this.#isEnded) return;
    const startedMs = performance.now();
    try {
      for (const payload of reader.read(piece)) {
        this.#events.onMessage(parseMessage(payload), payload.length);
        if (this.#isEnded) return;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return this.#end(error);
    }
    const resume = (): void => {
      this.#isWaiting = false;
      this.#flow();
    };
    this.#isWaiting = !this.#budget.spend(performance.now() - startedMs, resume);
    this.#flow();
  }

  #flow(): void {
    if (this.#isEnded) return;
    if (this.#isWaiting || this.#isHeld) this.#socket.pause();
    else if (this.#socket.isPaused()) this.#socket.resume();
  }

  #end(error: ProtocolError | undefined): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#socket.destroy();
    this.#events.onEnd(error);
  }
}
