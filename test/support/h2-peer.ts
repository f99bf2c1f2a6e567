// One end of an HTTP/2 connection, for the raw client and the recording origin: stores every received frame, reassembles
// header blocks and bodies, obeys and grants windows, and sends any frames. It checks nothing: a test must be able to do
// what is forbidden and to observe a broken peer.
//
//   peer.send(frames...)  peer.frame(isIt)  peer.until(read, what)  peer.frames  peer.counts  peer.goaways  peer.closed
//   peer.stream(id): see h2-stream.ts
import type { Duplex } from 'node:stream';
import {
  contentOf,
  END_HEADERS,
  END_STREAM,
  errorOf,
  type Frame,
  FrameReader,
  type Goaway,
  goawayOf,
  incrementOf,
  ACK,
  pingFrame,
  type Settings,
  settingsAckFrame,
  settingsOf,
  windowFrame,
} from './h2-frames.ts';
import { H2Stream } from './h2-stream.ts';
import { HpackDecoder } from './hpack.ts';

export type PeerOptions = {
  /** The values of the first SETTINGS frame. */
  readonly settings?: Settings;
  /** Returns the window of received bytes at once; true by default. */
  readonly isGranting?: boolean;
  /** Acknowledges SETTINGS and PING; true by default. */
  readonly isAcknowledging?: boolean;
};
type Source = { readSome(): Promise<Buffer | undefined>; readonly finished: Promise<string> };
type OpenBlock = { readonly stream: number; readonly isEnd: boolean; readonly fragments: Buffer[] };

const STORED_BYTES = 1 << 20;
const FIRST_WINDOW = 65_535;

export class H2Peer {
  readonly #source: Source;
  readonly #socket: Duplex;
  readonly #options: PeerOptions;
  readonly #onStream: (stream: H2Stream) => void;
  readonly #decoder: HpackDecoder;
  readonly #reader = new FrameReader();
  readonly #checks = new Set<() => void>();
  #openBlock: OpenBlock | undefined;
  #storedData = 0;
  /** Every received frame, in order. DATA payloads are stored up to 1 MiB; the lengths are always right. */
  readonly frames: Frame[] = [];
  /** The number of received frames by type. */
  readonly counts: Record<string, number> = {};
  readonly streams: Map<number, H2Stream> = new Map<number, H2Stream>();
  readonly goaways: Goaway[] = [];
  /** The settings of the other end so far. */
  remote: Settings = {};
  /** The remaining send window of the connection. */
  window: number = FIRST_WINDOW;
  isClosed = false;
  /** The error of reading, for example of an invalid header block. */
  failure: Error | undefined;
  /** Resolves with 'end' after a FIN of the other end, otherwise with the error code. */
  readonly closed: Promise<string>;

  constructor(
    source: Source,
    socket: Duplex,
    options: PeerOptions & { readonly onStream?: (stream: H2Stream) => void },
  ) {
    this.#source = source;
    this.#socket = socket;
    this.#options = options;
    this.#onStream = options.onStream ?? ((): void => undefined);
    this.#decoder = new HpackDecoder(options.settings?.header_table_size);
    this.closed = this.#pump();
  }

  /** True when the bytes were written, false when the connection is closed. */
  send(...bytes: readonly (Buffer | string)[]): Promise<boolean> {
    if (this.#socket.destroyed || this.#socket.writableEnded) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#socket.write(Buffer.concat(bytes.map((piece) => Buffer.from(piece))), (error) => resolve(!error));
    });
  }

  /** The first frame that matches, already received or future. */
  frame(isIt: (frame: Frame) => boolean, what = 'a frame'): Promise<Frame> {
    let seen = 0;
    return this.until(() => {
      for (; seen < this.frames.length; seen++) {
        const frame = this.frames[seen];
        if (frame !== undefined && isIt(frame)) return frame;
      }
      return undefined;
    }, what);
  }

  /** Waits until `read` returns a value or throws. */
  until<T>(read: () => T | undefined, what: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        try {
          const value = read();
          if (value === undefined && this.isClosed) throw this.#tooEarly(what);
          if (value === undefined) return;
          resolve(value);
        } catch (error) {
          reject(error);
        }
        this.#checks.delete(check);
      };
      this.#checks.add(check);
      check();
    });
  }

  /** The stream with this id, created on first use. */
  stream(id: number): H2Stream {
    const there = this.streams.get(id);
    if (there !== undefined) return there;
    const stream = new H2Stream(this, id, this.remote.initial_window_size ?? FIRST_WINDOW);
    this.streams.set(id, stream);
    return stream;
  }

  async #pump(): Promise<string> {
    try {
      for (let piece = await this.#source.readSome(); piece; piece = await this.#source.readSome()) {
        for (const frame of this.#reader.push(piece)) this.#receive(frame);
        this.#notify();
      }
    } catch (error) {
      this.failure = error instanceof Error ? error : new Error(String(error));
      this.#socket.destroy();
    }
    this.isClosed = true;
    this.#notify();
    return this.#source.finished;
  }

  #notify(): void {
    for (const check of this.#checks) check();
  }

  #receive(frame: Frame): void {
    this.#keep(frame);
    const isAck = (frame.flags & ACK) !== 0;
    if (frame.type === 'DATA') this.#receiveData(frame);
    else if (frame.type === 'HEADERS' || frame.type === 'PUSH_PROMISE') {
      const isEnd = frame.type === 'HEADERS' && (frame.flags & END_STREAM) !== 0;
      const promised = frame.type === 'PUSH_PROMISE' ? frame.payload.readUInt32BE(0) : undefined;
      this.#openBlock = { stream: promised ?? frame.stream, isEnd, fragments: [] };
      this.#receiveFragment(frame);
    } else if (frame.type === 'CONTINUATION') this.#receiveFragment(frame);
    else if (frame.type === 'RST_STREAM') this.stream(frame.stream).resetCode = errorOf(frame);
    else if (frame.type === 'GOAWAY') this.goaways.push(goawayOf(frame));
    else if (frame.type === 'WINDOW_UPDATE') this.#receiveWindow(frame);
    else if (frame.type === 'SETTINGS' && !isAck) this.#receiveSettings(frame);
    else if (frame.type === 'PING' && !isAck && this.#options.isAcknowledging !== false)
      void this.send(pingFrame(frame.payload, { isAck: true }));
  }

  #receiveFragment(frame: Frame): void {
    const block = this.#openBlock;
    if (block === undefined) throw new Error('CONTINUATION without HEADERS');
    block.fragments.push(contentOf(frame));
    if ((frame.flags & END_HEADERS) === 0) return;
    this.#openBlock = undefined;
    const isNew = !this.streams.has(block.stream);
    const stream = this.stream(block.stream);
    stream.blocks.push({
      fields: this.#decoder.decode(Buffer.concat(block.fragments)),
      isEnd: block.isEnd,
    });
    if (block.isEnd) stream.isEnded = true;
    if (isNew) this.#onStream(stream);
  }

  #receiveData(frame: Frame): void {
    const stream = this.stream(frame.stream);
    stream.add(contentOf(frame));
    if ((frame.flags & END_STREAM) !== 0) stream.isEnded = true;
    if (this.#options.isGranting === false || frame.length === 0) return;
    void this.send(windowFrame(0, frame.length));
    if (!stream.isEnded) void stream.grant(frame.length);
  }

  #receiveWindow(frame: Frame): void {
    if (frame.stream === 0) this.window += incrementOf(frame);
    else this.stream(frame.stream).window += incrementOf(frame);
  }

  #receiveSettings(frame: Frame): void {
    const settings = settingsOf(frame);
    const before = this.remote.initial_window_size ?? FIRST_WINDOW;
    const change = (settings.initial_window_size ?? before) - before;
    for (const stream of this.streams.values()) stream.window += change;
    this.remote = { ...this.remote, ...settings };
    if (this.#options.isAcknowledging !== false) void this.send(settingsAckFrame());
  }

  #keep(frame: Frame): void {
    this.counts[frame.type] = (this.counts[frame.type] ?? 0) + 1;
    const isData = frame.type === 'DATA';
    const isStored = !isData || this.#storedData < STORED_BYTES;
    if (isData) this.#storedData += frame.length;
    // A copy: the payload is a view of the whole received chunk.
    this.frames.push({ ...frame, payload: isStored ? Buffer.from(frame.payload) : Buffer.alloc(0) });
  }

  #tooEarly(what: string): Error {
    const last = this.goaways.at(-1);
    const why = last === undefined ? '' : `, after GOAWAY ${last.code} ${last.debug}`;
    return new Error(`the connection ended before ${what}${why}`, { cause: this.failure });
  }
}
