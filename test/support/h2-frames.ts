// HTTP/2 frames (RFC 9113, sections 4 and 6) as bytes and back, for the test peers. It checks
// neither what it sends nor what it reads: the tests decide what is valid. It shares no code with src.
//
//   dataFrame(1, 'x', { isEnd: true })  headersFrame(1, block, { split: 100 })  rstFrame(1, 'CANCEL') ...  -> Buffer
//   encodeFrame({ type: 'PING', payload })                    any frame, also with a wrong length
//   new FrameReader().push(bytes)                             -> Frame[]
//   contentOf, errorOf, goawayOf, settingsOf, incrementOf     the content of a payload

const TYPES = [
  'DATA',
  'HEADERS',
  'PRIORITY',
  'RST_STREAM',
  'SETTINGS',
  'PUSH_PROMISE',
  'PING',
  'GOAWAY',
  'WINDOW_UPDATE',
  'CONTINUATION',
] as const;
const ERRORS = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
] as const;
const SETTINGS = {
  header_table_size: 1,
  enable_push: 2,
  max_concurrent_streams: 3,
  initial_window_size: 4,
  max_frame_size: 5,
  max_header_list_size: 6,
  enable_connect_protocol: 8,
} as const;

export type FrameType = (typeof TYPES)[number];
export type ErrorName = (typeof ERRORS)[number];
export type Settings = { readonly [name in keyof typeof SETTINGS]?: number };
export type Frame = {
  /** A number where the type has no name. */
  readonly type: FrameType | number;
  readonly flags: number;
  readonly stream: number;
  /** The payload length in the frame header. */
  readonly length: number;
  readonly payload: Buffer;
};
export type Goaway = {
  readonly lastStream: number;
  readonly code: ErrorName | number;
  readonly debug: string;
};

export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' as const;
export const END_STREAM = 0x01 as const;
export const ACK = 0x01 as const;
export const END_HEADERS = 0x04 as const;
export const PADDED = 0x08 as const;
export const HAS_PRIORITY = 0x20 as const;

export function encodeFrame(frame: Partial<Frame> & Pick<Frame, 'type'>): Buffer {
  const payload = frame.payload ?? Buffer.alloc(0);
  const head = Buffer.alloc(9);
  head.writeUIntBE(frame.length ?? payload.length, 0, 3);
  head.writeUInt8(typeof frame.type === 'number' ? frame.type : TYPES.indexOf(frame.type), 3);
  head.writeUInt8(frame.flags ?? 0, 4);
  head.writeUInt32BE(frame.stream ?? 0, 5);
  return Buffer.concat([head, payload]);
}

export function dataFrame(
  stream: number,
  bytes: string | Buffer,
  { isEnd = false, padding }: { readonly isEnd?: boolean; readonly padding?: number } = {},
): Buffer {
  const content = Buffer.from(bytes);
  const flags = (isEnd ? END_STREAM : 0) | (padding === undefined ? 0 : PADDED);
  const payload =
    padding === undefined ? content : Buffer.concat([Buffer.of(padding), content, Buffer.alloc(padding)]);
  return encodeFrame({ type: 'DATA', flags, stream, payload });
}

/** HEADERS; with `split` followed by CONTINUATION frames of that many bytes; with `isOpen` without END_HEADERS. */
export function headersFrame(
  stream: number,
  block: Buffer,
  {
    isEnd = false,
    isOpen = false,
    split = 16_384,
  }: { readonly isEnd?: boolean; readonly isOpen?: boolean; readonly split?: number } = {},
): Buffer {
  const first = block.subarray(0, split);
  const isWhole = block.length <= split && !isOpen;
  const flags = (isEnd ? END_STREAM : 0) | (isWhole ? END_HEADERS : 0);
  const frames = [encodeFrame({ type: 'HEADERS', flags, stream, payload: first })];
  for (let at = split; at < block.length; at += split) {
    const isLast = at + split >= block.length && !isOpen;
    frames.push(continuationFrame(stream, block.subarray(at, at + split), { isLast }));
  }
  return Buffer.concat(frames);
}

export function continuationFrame(
  stream: number,
  fragment: Buffer,
  { isLast = false }: { readonly isLast?: boolean } = {},
): Buffer {
  return encodeFrame({ type: 'CONTINUATION', flags: isLast ? END_HEADERS : 0, stream, payload: fragment });
}

export function rstFrame(stream: number, code: ErrorName | number = 'CANCEL'): Buffer {
  return encodeFrame({ type: 'RST_STREAM', stream, payload: word(numberOf(code)) });
}

export function settingsFrame(settings: Settings = {}): Buffer {
  const pairs = Object.entries(settings).map(([name, value]) => {
    const pair = Buffer.alloc(6);
    pair.writeUInt16BE(SETTINGS[name as keyof Settings], 0);
    pair.writeUInt32BE(value, 2);
    return pair;
  });
  return encodeFrame({ type: 'SETTINGS', payload: Buffer.concat(pairs) });
}

export function settingsAckFrame(): Buffer {
  return encodeFrame({ type: 'SETTINGS', flags: ACK });
}

/** A ping of eight bytes. */
export function pingFrame(
  text: string | Buffer = 'pingping',
  { isAck = false }: { readonly isAck?: boolean } = {},
): Buffer {
  return encodeFrame({ type: 'PING', flags: isAck ? ACK : 0, payload: Buffer.from(text) });
}

export function goawayFrame(lastStream: number, code: ErrorName | number = 'NO_ERROR', debug = ''): Buffer {
  const payload = Buffer.concat([word(lastStream), word(numberOf(code)), Buffer.from(debug)]);
  return encodeFrame({ type: 'GOAWAY', payload });
}

export function windowFrame(stream: number, increment: number): Buffer {
  return encodeFrame({ type: 'WINDOW_UPDATE', stream, payload: word(increment) });
}

export function priorityFrame(stream: number, dependsOn = 0, weight = 15): Buffer {
  return encodeFrame({
    type: 'PRIORITY',
    stream,
    payload: Buffer.concat([word(dependsOn), Buffer.of(weight)]),
  });
}

export function pushFrame(stream: number, promised: number, block: Buffer): Buffer {
  const payload = Buffer.concat([word(promised), block]);
  return encodeFrame({ type: 'PUSH_PROMISE', flags: END_HEADERS, stream, payload });
}

/** Splits the bytes of a connection into frames. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  push(bytes: Buffer): Frame[] {
    const buffer = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const frames: Frame[] = [];
    let at = 0;
    while (buffer.length >= at + 9) {
      const length = buffer.readUIntBE(at, 3);
      if (buffer.length < at + 9 + length) break;
      const type = buffer.readUInt8(at + 3);
      frames.push({
        type: TYPES[type] ?? type,
        flags: buffer.readUInt8(at + 4),
        stream: buffer.readUInt32BE(at + 5) & 0x7fffffff,
        length,
        payload: buffer.subarray(at + 9, at + 9 + length),
      });
      at += 9 + length;
    }
    this.#rest = buffer.subarray(at);
    return frames;
  }
}

/** The data or the header block fragment, without padding, priority and promised id. */
export function contentOf(frame: Frame): Buffer {
  const isPadded = (frame.flags & PADDED) !== 0;
  const padding = isPadded ? frame.payload.readUInt8(0) : 0;
  let start = isPadded ? 1 : 0;
  if (frame.type === 'HEADERS' && (frame.flags & HAS_PRIORITY) !== 0) start += 5;
  if (frame.type === 'PUSH_PROMISE') start += 4;
  return frame.payload.subarray(start, frame.payload.length - padding);
}

/** The code of RST_STREAM. */
export function errorOf(frame: Frame): ErrorName | number {
  const code = frame.payload.readUInt32BE(0);
  return ERRORS[code] ?? code;
}

export function goawayOf(frame: Frame): Goaway {
  const code = frame.payload.readUInt32BE(4);
  return {
    lastStream: frame.payload.readUInt32BE(0) & 0x7fffffff,
    code: ERRORS[code] ?? code,
    debug: frame.payload.toString('latin1', 8),
  };
}

export function settingsOf(frame: Frame): Settings {
  const settings: Record<string, number> = {};
  for (let at = 0; at + 6 <= frame.payload.length; at += 6) {
    const id = frame.payload.readUInt16BE(at);
    const name = Object.entries(SETTINGS).find(([, known]) => known === id)?.[0];
    settings[name ?? `setting_${id}`] = frame.payload.readUInt32BE(at + 2);
  }
  return settings;
}

/** The increment of WINDOW_UPDATE. */
export function incrementOf(frame: Frame): number {
  return frame.payload.readUInt32BE(0) & 0x7fffffff;
}

function numberOf(code: ErrorName | number): number {
  return typeof code === 'number' ? code : ERRORS.indexOf(code);
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
