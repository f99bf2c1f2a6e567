// The bytes of a call as a stream: what is consumed is granted, so that at most a window is held.
import { MAX_LINE_BYTES, type CallParams } from '../../box-agent/protocol/messages.ts';
import { ProtocolError } from '../../box-agent/protocol/frame.ts';
import type { AgentChannel } from './agent-channel.ts';
import type { RunningCall } from './running-call.ts';

export type DataCall<H, R> = {
  readonly call: RunningCall<H, R>;
  /** Ends with the call, also where it failed: `call.result` says so. */
  data(): AsyncGenerator<Buffer, void, undefined>;
};

type Parsers<H, R> = {
  readonly parseHead?: (payload: Buffer) => H;
  readonly parseResult: (payload: Buffer) => R;
};

/** Throws an AgentError. */
export function openDataCall<H, R>(
  channel: AgentChannel,
  params: CallParams,
  parsers: Parsers<H, R>,
): DataCall<H, R> {
  const pieces = new PieceQueue();
  let isEnded = false;
  let wake: (() => void) | undefined;
  const call = channel.call(params, {
    ...parsers,
    onData: (_, bytes) => {
      pieces.push(bytes);
      wake?.();
    },
    onEnd: () => {
      isEnded = true;
      wake?.();
    },
  });
  async function* data(): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      const piece = pieces.take();
      if (piece !== undefined) {
        yield piece;
        call.grant(piece.length);
      } else if (isEnded) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }
  return { call, data };
}

/** Pieces shorter than this are joined. */
const SMALL_BYTES = 4 * 1024;
const BLOCK_BYTES = 16 * 1024;

/**
 * What waits takes little more memory than it has bytes: an agent may send a window of one-byte frames, each of which is an object
 * of a hundred bytes and holds what else came with it.
 */
export class PieceQueue {
  readonly #pieces: Buffer[] = [];
  #block: Buffer = Buffer.alloc(0);
  /** Of the block; it is the last piece while that is not 0. */
  #used = 0;

  push(bytes: Buffer): void {
    if (bytes.length >= SMALL_BYTES) {
      this.#used = 0;
      const isShared = bytes.buffer.byteLength > 2 * bytes.length;
      this.#pieces.push(isShared ? copyOf(bytes) : bytes);
      return;
    }
    const isJoined = this.#used > 0 && this.#used + bytes.length <= BLOCK_BYTES;
    if (!isJoined) {
      this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#used = 0;
    }
    this.#used += bytes.copy(this.#block, this.#used);
    const joined = this.#block.subarray(0, this.#used);
    if (isJoined) this.#pieces[this.#pieces.length - 1] = joined;
    else this.#pieces.push(joined);
  }

  take(): Buffer | undefined {
    const piece = this.#pieces.shift();
    if (this.#pieces.length === 0) this.#used = 0;
    return piece;
  }
}

/** Buffer.from would take it out of a pool, which it holds. */
function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

const NEWLINE = 10;

/** The lines of a search. Throws a ProtocolError for one that is too long or not ended. */
export async function* readLines(data: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of data) {
    const block = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    let at = 0;
    for (let end = block.indexOf(NEWLINE); end !== -1; end = block.indexOf(NEWLINE, at)) {
      if (end - at > MAX_LINE_BYTES) throw new ProtocolError('a line that is too long');
      yield block.subarray(at, end);
      at = end + 1;
    }
    rest = block.subarray(at);
    if (rest.length > MAX_LINE_BYTES) throw new ProtocolError('a line that is too long');
  }
  if (rest.length > 0) throw new ProtocolError('a line without its end');
}
