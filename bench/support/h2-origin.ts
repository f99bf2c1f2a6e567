// The origin over HTTP/2: what origin.ts answers, as cheaply. Never more content than the other side's window takes.
import type { Duplex } from 'node:stream';
import {
  DATA,
  DEFAULT_WINDOW,
  END_HEADERS,
  END_STREAM,
  HEADERS,
  HEADER_TABLE_SIZE,
  INITIAL_WINDOW_SIZE,
  LARGE_WINDOW,
  MAX_CONCURRENT_STREAMS,
  frame,
  startFrames,
} from './h2-frames.ts';
import { DEFAULT_TABLE_SIZE, type Field, createDecoder, encodeBlocks, encodeLiterals } from './hpack.ts';

/** As nginx has it; more than any client of the benchmark asks for. */
const STREAMS = 128;

type Frames = { readonly bytes: Buffer; readonly at: readonly number[] };

/** `judge` says what is wrong with a request; it is asked once for requests that are the same. */
export function serveH2(
  socket: Duplex,
  answer: { readonly fields: readonly Field[]; readonly body: string },
  judge: (fields: readonly Field[]) => string | undefined,
  onAnswer: () => void,
): void {
  const decode = createDecoder();
  const unanswered: number[] = [];
  const body = Buffer.from(answer.body);
  let due = answerFrames(answer.fields, body, true);
  let window = DEFAULT_WINDOW;
  let right: readonly Field[] | undefined;

  const pump = (): void => {
    while (unanswered.length > 0 && window >= body.length) {
      window -= body.length;
      onAnswer();
      writer.send(due.first.bytes, due.first.at, unanswered.shift() ?? 0);
      due = { ...due, first: due.next };
    }
  };
  const end = (stream: number): void => {
    unanswered.push(stream);
    pump();
  };
  const settings = { [MAX_CONCURRENT_STREAMS]: STREAMS, [INITIAL_WINDOW_SIZE]: LARGE_WINDOW };
  const writer = startFrames(socket, 'server', settings, {
    onSettings(theirs) {
      const size = theirs.get(HEADER_TABLE_SIZE) ?? DEFAULT_TABLE_SIZE;
      due = answerFrames(answer.fields, body, size >= DEFAULT_TABLE_SIZE);
    },
    onHeaders(stream, block, isEnd) {
      const fields = decode(block);
      const fault = fields === right ? undefined : judge(fields);
      if (fault !== undefined) return refuse(stream, fault);
      right = fields;
      if (isEnd) end(stream);
    },
    onData(stream, _, isEnd) {
      if (isEnd) end(stream);
    },
    onWindow(octets) {
      window += octets;
      pump();
    },
    onFault: () => socket.destroy(),
  });

  function refuse(stream: number, fault: string): void {
    const fields: readonly Field[] = [
      [':status', '500'],
      ['content-length', String(fault.length)],
    ];
    const { bytes, at } = framesOf(encodeLiterals(fields), Buffer.from(fault));
    writer.send(bytes, at, stream);
  }
}

function answerFrames(
  fields: readonly Field[],
  body: Buffer,
  hasTable: boolean,
): { readonly first: Frames; readonly next: Frames } {
  const { first, next } = encodeBlocks(fields, hasTable);
  return { first: framesOf(first, body), next: framesOf(next, body) };
}

function framesOf(block: Buffer, body: Buffer): Frames {
  const head = frame(HEADERS, END_HEADERS, block);
  return { bytes: Buffer.concat([head, frame(DATA, END_STREAM, body)]), at: [0, head.length] };
}
