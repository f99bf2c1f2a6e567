// One end of an HTTP/2 connection, reduced to what a benchmark needs (RFC 9113): frames in and out, acknowledgements of
// SETTINGS and PING, one write for all frames of a turn of the event loop. It parses no fields and no bodies.
import type { Duplex } from 'node:stream';

export type FrameHandlers = {
  /** Settings of the other side, once. */
  onSettings(settings: ReadonlyMap<number, number>): void;
  onHeaders(stream: number, block: Buffer, isEnd: boolean): void;
  onData(stream: number, length: number, isEnd: boolean): void;
  /** The connection window: octets of content that the other side still accepts on all streams together. */
  onWindow(octets: number): void;
  onError(error: Error): void;
};

export type FrameWriter = {
  /** Frames written for stream 0; those of `at` go to `stream`. */
  send(frames: Buffer, at: readonly number[], stream: number): void;
};

export const DATA = 0;
export const HEADERS = 1;
const [RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE] = [3, 4, 6, 7, 8] as const;

export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;
const [ACK, PADDED, PRIORITY] = [0x1, 0x8, 0x20] as const;

export const HEADER_TABLE_SIZE = 1;
export const ENABLE_PUSH = 2;
export const MAX_CONCURRENT_STREAMS = 3;
export const INITIAL_WINDOW_SIZE = 4;
/** As large as that of h2load: flow control does not limit the load. */
export const LARGE_WINDOW: number = 2 ** 30 - 1;
export const DEFAULT_WINDOW = 65_535;

const PREFACE: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const HEAD_SIZE = 9;

export function frame(type: number, flags: number, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(HEAD_SIZE + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  payload.copy(bytes, HEAD_SIZE);
  return bytes;
}

/** Sends SETTINGS and starts to read; a client sends the preface first. */
export function startFrames(
  socket: Duplex,
  role: 'client' | 'server',
  settings: Readonly<Record<number, number>>,
  handlers: FrameHandlers,
): FrameWriter {
  const { send, flush } = createOutput(socket);
  const writer: FrameWriter = {
    send(frames, at, stream) {
      const start = send(frames);
      for (const each of at) start.bytes.writeUInt32BE(stream, start.offset + each + 5);
    },
  };
  if (role === 'client') send(PREFACE);
  send(frame(SETTINGS, 0, settingsPayload(settings)));
  const more = Buffer.alloc(4);
  more.writeUInt32BE(LARGE_WINDOW - DEFAULT_WINDOW);
  send(frame(WINDOW_UPDATE, 0, more));
  const read = createReader(role === 'server' ? PREFACE : Buffer.alloc(0), (head, payload) =>
    obey(head, payload, handlers, send),
  );
  socket.on('data', (chunk: Buffer) => {
    try {
      read(chunk);
    } catch (error) {
      handlers.onError(error as Error);
    }
    flush();
  });
  return writer;
}

type Sent = { readonly bytes: Buffer; readonly offset: number };

/** Collects frames until the end of the turn, or until `flush`: one write, one TLS record. */
function createOutput(socket: Duplex): { send(frames: Buffer): Sent; flush(): void } {
  let bytes = Buffer.allocUnsafe(65_536);
  let length = 0;
  let isDue = false;
  const flush = (): void => {
    if (length === 0) return;
    socket.write(Buffer.from(bytes.subarray(0, length)));
    length = 0;
  };
  return {
    flush,
    send(frames) {
      if (length + frames.length > bytes.length) flush();
      if (frames.length > bytes.length) bytes = Buffer.allocUnsafe(frames.length);
      const offset = length;
      frames.copy(bytes, offset);
      length += frames.length;
      if (!isDue) {
        isDue = true;
        setImmediate(() => {
          isDue = false;
          flush();
        });
      }
      return { bytes, offset };
    },
  };
}

function settingsPayload(settings: Readonly<Record<number, number>>): Buffer {
  const pairs = Object.entries(settings);
  const payload = Buffer.alloc(pairs.length * 6);
  pairs.forEach(([id, value], i) => {
    payload.writeUInt16BE(Number(id), i * 6);
    payload.writeUInt32BE(value, i * 6 + 2);
  });
  return payload;
}

type Head = { readonly type: number; readonly flags: number; readonly stream: number };

function createReader(
  expected: Buffer,
  onFrame: (head: Head, payload: Buffer) => void,
): (chunk: Buffer) => void {
  let unread: Buffer = Buffer.alloc(0);
  let preface = expected;
  return (chunk) => {
    let bytes = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
    if (preface.length > 0) {
      if (bytes.length < preface.length) return void (unread = bytes);
      if (!bytes.subarray(0, preface.length).equals(preface)) throw new Error('no HTTP/2 preface');
      bytes = bytes.subarray(preface.length);
      preface = Buffer.alloc(0);
    }
    let at = 0;
    while (bytes.length - at >= HEAD_SIZE) {
      const end = at + HEAD_SIZE + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      const head = {
        type: bytes[at + 3] ?? 0,
        flags: bytes[at + 4] ?? 0,
        stream: bytes.readUInt32BE(at + 5) & 0x7fffffff,
      };
      onFrame(head, bytes.subarray(at + HEAD_SIZE, end));
      at = end;
    }
    unread = at === bytes.length ? Buffer.alloc(0) : bytes.subarray(at);
  };
}

function obey(
  { type, flags, stream }: Head,
  payload: Buffer,
  handlers: FrameHandlers,
  send: (frames: Buffer) => Sent,
): void {
  const isEnd = (flags & END_STREAM) !== 0;
  if (type === HEADERS) {
    if ((flags & END_HEADERS) === 0) throw new Error('a header block has more than one frame');
    handlers.onHeaders(stream, unpad(payload, flags), isEnd);
  } else if (type === DATA) handlers.onData(stream, unpad(payload, flags & ~PRIORITY).length, isEnd);
  else if (type === WINDOW_UPDATE && stream === 0) handlers.onWindow(payload.readUInt32BE(0));
  else if (type === SETTINGS && (flags & ACK) === 0) {
    send(frame(SETTINGS, ACK, Buffer.alloc(0)));
    handlers.onSettings(parseSettings(payload));
  } else if (type === PING && (flags & ACK) === 0) send(frame(PING, ACK, payload));
  else if (type === RST_STREAM)
    throw new Error(`stream ${stream} was reset, code ${payload.readUInt32BE(0)}`);
  else if (type === GOAWAY) throw new Error(`the connection was closed, code ${payload.readUInt32BE(4)}`);
}

function parseSettings(payload: Buffer): ReadonlyMap<number, number> {
  const settings = new Map<number, number>();
  for (let at = 0; at < payload.length; at += 6)
    settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  return settings;
}

function unpad(payload: Buffer, flags: number): Buffer {
  const padded = (flags & PADDED) === 0 ? 0 : 1;
  const start = padded + ((flags & PRIORITY) === 0 ? 0 : 5);
  const end = payload.length - (padded === 0 ? 0 : (payload[0] ?? 0));
  return start === 0 && end === payload.length ? payload : payload.subarray(start, end);
}
