// The origin over HTTP/2: the responses of origin.ts, as cheaply as possible, within the flow-control window.
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

/** The value of nginx; more than any client of the benchmark needs. */
const STREAMS = 128;

type Frames = { readonly bytes: Buffer; readonly at: readonly number[] };

/** `check` returns what is wrong with a request; it is called once for identical requests. */
export function serveH2(
  socket: Duplex,
  response: { readonly fields: readonly Field[]; readonly body: string },
  judge: (fields: readonly Field[]) => string | undefined,
  onResponse: () => void,
): void {
  const decode = createDecoder();
  const pending: number[] = [];
  const body = Buffer.from(response.body);
  let due = responseFrames(response.fields, body, true);
  let window = DEFAULT_WINDOW;
  let right: readonly Field[] | undefined;

  const pump = (): void => {
    while (pending.length > 0 && window >= body.length) {
      window -= body.length;
      onResponse();
      writer.send(due.first.bytes, due.first.at, pending.shift() ?? 0);
      due = { ...due, first: due.next };
    }
  };
  const end = (stream: number): void => {
    pending.push(stream);
    pump();
  };
  const settings = { [MAX_CONCURRENT_STREAMS]: STREAMS, [INITIAL_WINDOW_SIZE]: LARGE_WINDOW };
  const writer = startFrames(socket, 'server', settings, {
    onSettings(theirs) {
      const size = theirs.get(HEADER_TABLE_SIZE) ?? DEFAULT_TABLE_SIZE;
      due = responseFrames(response.fields, body, size >= DEFAULT_TABLE_SIZE);
    },
    onHeaders(stream, block, isEnd) {
      const fields = decode(block);
      const error = fields === right ? undefined : judge(fields);
      if (error !== undefined) return refuse(stream, error);
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
    onError: () => socket.destroy(),
  });

  function refuse(stream: number, error: string): void {
    const fields: readonly Field[] = [
      [':status', '500'],
      ['content-length', String(error.length)],
    ];
    const { bytes, at } = framesOf(encodeLiterals(fields), Buffer.from(error));
    writer.send(bytes, at, stream);
  }
}

function responseFrames(
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
