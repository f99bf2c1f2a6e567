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
import {
  type Blocks,
  DEFAULT_TABLE_SIZE,
  type Field,
  createDecoder,
  encodeBlocks,
  encodeLiterals,
} from './hpack.ts';

/** More than any client of the benchmark needs. */
const STREAMS = 256;

type Frames = { readonly bytes: Buffer; readonly at: readonly number[] };
type Pending = { readonly stream: number; readonly id: string | undefined };

/**
 * `judge` returns what is wrong with a request; it is called once for identical requests. A response repeats the
 * x-request-id of its request.
 */
export function serveH2(
  socket: Duplex,
  response: { readonly fields: readonly Field[]; readonly body: string },
  judge: (fields: readonly Field[]) => string | undefined,
  onResponse: () => void,
): void {
  const decode = createDecoder();
  const pending: Pending[] = [];
  const ids = new Map<number, string | undefined>();
  const body = Buffer.from(response.body);
  const right = new WeakSet<readonly Field[]>();
  let responses = createResponses(response.fields, body, true);
  let window = DEFAULT_WINDOW;

  const pump = (): void => {
    while (window >= body.length) {
      const next = pending.shift();
      if (next === undefined) return;
      window -= body.length;
      onResponse();
      const { bytes, at } = responses(next.id);
      writer.send(bytes, at, next.stream);
    }
  };
  const end = (stream: number): void => {
    pending.push({ stream, id: ids.get(stream) });
    ids.delete(stream);
    pump();
  };
  const settings = { [MAX_CONCURRENT_STREAMS]: STREAMS, [INITIAL_WINDOW_SIZE]: LARGE_WINDOW };
  const writer = startFrames(socket, 'server', settings, {
    onSettings(theirs) {
      const size = theirs.get(HEADER_TABLE_SIZE) ?? DEFAULT_TABLE_SIZE;
      responses = createResponses(response.fields, body, size >= DEFAULT_TABLE_SIZE);
    },
    onHeaders(stream, block, isEnd) {
      const fields = decode(block);
      const error = right.has(fields) ? undefined : judge(fields);
      if (error !== undefined) return refuse(stream, error);
      right.add(fields);
      ids.set(stream, fields.find(([name]) => name === 'x-request-id')?.[1]);
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

/** The frames of the next response of a connection. The first one fills the table of the client. */
function createResponses(
  fields: readonly Field[],
  body: Buffer,
  hasTable: boolean,
): (id: string | undefined) => Frames {
  const blocks: Blocks = encodeBlocks(fields, hasTable);
  const known = new Map<string | undefined, Frames>();
  let isFirst = true;
  const create = (block: Buffer, id: string | undefined): Frames =>
    framesOf(id === undefined ? block : Buffer.concat([block, encodeLiterals([['x-request-id', id]])]), body);
  return (id) => {
    if (isFirst) {
      isFirst = false;
      return create(blocks.first, id);
    }
    let frames = known.get(id);
    if (frames === undefined) {
      frames = create(blocks.next, id);
      if (known.size < 1_000) known.set(id, frames);
    }
    return frames;
  };
}

function framesOf(block: Buffer, body: Buffer): Frames {
  const head = frame(HEADERS, END_HEADERS, block);
  return { bytes: Buffer.concat([head, frame(DATA, END_STREAM, body)]), at: [0, head.length] };
}
