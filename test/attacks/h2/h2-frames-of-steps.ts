// Encodes the frame steps of one side of a script, in order. Sends nothing.
import {
  dataFrame,
  encodeFrame,
  goawayFrame,
  headersFrame,
  rstFrame,
  settingsFrame,
  windowFrame,
} from '../../support/h2-frames.ts';
import { encodeBlock, indexed, type SentField } from '../../support/hpack.ts';
import type { FrameStep, Part } from './h2-script.ts';

/** The stream to which the next step applies. */
export type StreamCount = { next: number; last: number };

/** The number of frames of a flood in one write. */
const PIECE = 100;

export function* piecesOf(
  step: FrameStep,
  count: StreamCount,
  fill: (text: string) => string,
): Iterable<Buffer> {
  if (!('times' in step)) {
    yield frameOf(step, count, fill);
    return;
  }
  let piece: Buffer[] = [];
  for (let n = 0; n < step.times; n += 1) {
    for (const inner of step.steps) piece.push(...piecesOf(inner, count, fill));
    if (piece.length < PIECE) continue;
    yield Buffer.concat(piece);
    piece = [];
  }
  yield Buffer.concat(piece);
}

function frameOf(
  step: Exclude<FrameStep, { times: number }>,
  count: StreamCount,
  fill: (text: string) => string,
): Buffer {
  if ('head' in step) {
    const stream = step.stream ?? take(count);
    // Without the reserved bit.
    count.last = stream & 0x7fffffff;
    const block = encodeBlock(step.head.flatMap((part) => fieldOf(part, fill)));
    const { isEnd = false, isOpen = false, split } = step;
    return headersFrame(stream, block, { isEnd, isOpen, ...(split === undefined ? {} : { split }) });
  }
  if ('bytes' in step) return Buffer.from(fill(step.bytes), 'latin1');
  if ('settings' in step) return settingsFrame(step.settings);
  if ('goaway' in step) return goawayFrame(step.goaway, step.code, step.debug);
  const stream = step.stream ?? count.last;
  if ('rst' in step) return rstFrame(stream, step.rst);
  if ('window' in step) return windowFrame(stream, step.window);
  if ('data' in step) {
    const { isEnd = false, padding } = step;
    const bytes = Buffer.from(fill(step.data), 'latin1');
    return dataFrame(stream, bytes, { isEnd, ...(padding === undefined ? {} : { padding }) });
  }
  const { frame: type, flags = 0, length, payload = '' } = step;
  const content = Buffer.from(fill(payload), 'latin1');
  return encodeFrame({ type, flags, stream, payload: content, ...(length === undefined ? {} : { length }) });
}

function take(count: StreamCount): number {
  const stream = count.next;
  count.next += 2;
  return stream;
}

function fieldOf(part: Part, fill: (text: string) => string): readonly SentField[] {
  if ('hex' in part) return [Buffer.from(part.hex, 'hex')];
  if ('index' in part) return Array.from({ length: part.times ?? 1 }, () => indexed(part.index));
  const [name, value, indexing] = part;
  return [[name, fill(value), indexing]];
}
