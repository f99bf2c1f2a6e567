// One HTTP/2 connection of a client for concurrent requests: the requests of the HTTP/1.1 loads as fields, in turn,
// each response checked. A line sends one request at a time, each on the next stream.
import type { Duplex } from 'node:stream';
import type { Line } from './arrivals.ts';
import { type Target, openTls } from './connection.ts';
import {
  DEFAULT_WINDOW,
  ENABLE_PUSH,
  END_HEADERS,
  END_STREAM,
  HEADERS,
  HEADER_TABLE_SIZE,
  INITIAL_WINDOW_SIZE,
  LARGE_WINDOW,
  type FrameWriter,
  MAX_CONCURRENT_STREAMS,
  frame,
  startFrames,
} from './h2-frames.ts';
import { encodeRotation } from './h2-rotation.ts';
import { idOf } from './heads.ts';
import { DEFAULT_TABLE_SIZE, type Field, createDecoder } from './hpack.ts';

export type H2Connection = {
  readonly lines: readonly Line[];
  readonly suite: string;
  close(): void;
};

type Exchange = {
  readonly onResponse: () => void;
  readonly id: string | undefined;
  left: number | undefined;
};

export async function openH2Connection(
  target: Target,
  streams: number,
  onError: (error: Error) => void,
): Promise<H2Connection> {
  const { socket, suite } = await openTls(target, ['h2', 'http/1.1']);
  if (socket.alpnProtocol !== 'h2') throw new Error(`h2 was offered, ${socket.alpnProtocol} was chosen`);
  const exchange = await startExchanges(socket, target.heads, streams, onError);
  const onEnd = (): void => onError(new Error('a connection was closed'));
  socket.on('error', onError).on('close', onEnd);
  return {
    lines: Array.from({ length: streams }, () => ({ exchange })),
    suite,
    close() {
      socket.off('close', onEnd).destroy();
    },
  };
}

/** Resolves when the SETTINGS of the other side have arrived. */
async function startExchanges(
  socket: Duplex,
  heads: readonly string[],
  streams: number,
  onError: (error: Error) => void,
): Promise<Line['exchange']> {
  const exchanges = new Map<number, Exchange>();
  const decode = createDecoder();
  const greeted = Promise.withResolvers<ReadonlyMap<number, number>>();
  const settings = { [ENABLE_PUSH]: 0, [INITIAL_WINDOW_SIZE]: LARGE_WINDOW };
  const receive = (stream: number, length: number, isEnd: boolean): void => {
    const exchange = exchanges.get(stream);
    if (exchange?.left === undefined) throw new Error('received a response without a request');
    exchange.left -= length;
    if (!isEnd) return;
    if (exchange.left !== 0) throw new Error('a response has a wrong Content-Length');
    exchanges.delete(stream);
    exchange.onResponse();
  };
  const writer = startFrames(socket, 'client', settings, {
    onSettings: greeted.resolve,
    onHeaders(stream, block, isEnd) {
      const exchange = exchanges.get(stream);
      if (exchange) exchange.left = responseLength(decode(block), exchange.id);
      receive(stream, 0, isEnd);
    },
    onData: receive,
    onWindow: () => undefined,
    onError,
  });
  return createExchange(writer, exchanges, heads, checkSettings(await greeted.promise, streams));
}

/** Whether the HPACK table of the other side has the default size. */
function checkSettings(settings: ReadonlyMap<number, number>, streams: number): boolean {
  if ((settings.get(MAX_CONCURRENT_STREAMS) ?? streams) < streams)
    throw new Error('too few concurrent streams');
  if ((settings.get(INITIAL_WINDOW_SIZE) ?? DEFAULT_WINDOW) < 0) throw new Error('no window');
  return (settings.get(HEADER_TABLE_SIZE) ?? DEFAULT_TABLE_SIZE) >= DEFAULT_TABLE_SIZE;
}

function createExchange(
  writer: FrameWriter,
  exchanges: Map<number, Exchange>,
  heads: readonly string[],
  hasTable: boolean,
): Line['exchange'] {
  const { first, blocks } = encodeRotation(heads.map(fieldsOf), hasTable);
  const framed = (block: Buffer): Buffer => frame(HEADERS, END_STREAM | END_HEADERS, block);
  const frames = blocks.map(framed);
  const ids = heads.map(idOf);
  let opening: Buffer | undefined = framed(first);
  let stream = -1;
  let turn = 0;
  return (onResponse) => {
    stream += 2;
    exchanges.set(stream, { onResponse, id: ids[turn], left: undefined });
    writer.send(opening ?? frames[turn] ?? Buffer.alloc(0), [0], stream);
    opening = undefined;
    turn = (turn + 1) % frames.length;
  };
}

/** The fields of a request in the form of an HTTP/1.1 head. */
export function fieldsOf(head: string): readonly Field[] {
  const [start = '', ...lines] = head.trimEnd().split('\r\n');
  const [method = '', path = ''] = start.split(' ');
  const fields = lines.map((line): Field => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const host = fields.find(([name]) => name === 'host')?.[1] ?? '';
  const rest = fields.filter(([name]) => name !== 'host');
  return [[':method', method], [':scheme', 'https'], [':authority', host], [':path', path], ...rest];
}

function responseLength(fields: readonly Field[], id: string | undefined): number {
  const valueOf = (name: string): string | undefined => fields.find(([each]) => each === name)?.[1];
  const text = (): string => fields.map((field) => field.join(': ')).join('\n');
  if (valueOf(':status') !== '200') throw new Error(`a response was ${text()}`);
  if (id !== undefined && valueOf('x-request-id') !== id)
    throw new Error(`a response to ${id} has another id: ${text()}`);
  const length = valueOf('content-length');
  if (length === undefined) throw new Error('a response has no Content-Length');
  return Number(length);
}
