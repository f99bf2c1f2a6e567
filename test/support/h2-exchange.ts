// One stream at the recording origin: what the client sent, as it was, and the hands of the script that answers it.
// A script writes frames itself, in any order, also such as no server may send.
//
//   async respond({ request, interim, head, data, trailers }) {
//     await request.ended();                       // or answer before; a script that does nothing is silence
//     await interim(103, [['link', '</a>']]);
//     await head(200, [['content-type', 'text/plain']]);
//     await data('piece');                         // last one: data('piece', { isEnd: true })
//     await trailers([['grpc-status', '0']]);
//   }
//   Also: answer(status, fields, body), reset(code), goaway(lastStream, code), push(path), send(frames...), connection
import type { H2Connection } from './h2-connection.ts';
import { type ErrorName, pushFrame } from './h2-frames.ts';
import type { H2Stream } from './h2-stream.ts';
import { encodeBlock, type Field, type SentField } from './hpack.ts';
import type { HeaderList } from './message-reader.ts';

export type H2Body = { readonly length: number; readonly sha256: string; readonly content: Buffer };
export type H2Exchange = {
  readonly request: H2Request;
  readonly connection: H2Connection;
  interim(status: number, fields?: readonly SentField[]): Promise<boolean>;
  head(
    status: number,
    fields?: readonly SentField[],
    options?: { readonly isEnd?: boolean; readonly split?: number },
  ): Promise<boolean>;
  /** Within the client's windows; false when nobody wants it any more. */
  data(bytes: string | Buffer, options?: { readonly isEnd?: boolean }): Promise<boolean>;
  trailers(fields: readonly SentField[]): Promise<boolean>;
  /** A head and a body, in whole. */
  response(status: number, fields?: readonly SentField[], body?: string | Buffer): Promise<boolean>;
  reset(code?: ErrorName | number): Promise<boolean>;
  /** GOAWAY; without a number, one that includes this stream. */
  goaway(lastStream?: number, code?: ErrorName | number, debug?: string): Promise<boolean>;
  /** Promises a GET of this path on stream 2 (or another) without sending it. */
  push(path: string, promised?: number): Promise<boolean>;
  /** Any frames. */
  send(...frames: readonly (Buffer | string)[]): Promise<boolean>;
};

/** What the client sent on a stream; it grows until the stream has ended. */
export type H2Request = {
  readonly id: number;
  /** Which connection brought it, counted from 0. */
  readonly connection: number;
  /** The head in the order of the wire, pseudo-header fields too. */
  readonly fields: readonly Field[];
  readonly headers: HeaderList;
  /** Names of the fields that came as never indexed. */
  readonly neverIndexed: readonly string[];
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  /** What has come so far; the content is cut at 1 MiB. */
  readonly body: H2Body;
  readonly trailers: HeaderList | undefined;
  readonly isEnded: boolean;
  /** The code of the RST_STREAM that came. */
  readonly reset: ErrorName | number | undefined;
  /** The values of every field of this name. */
  values(name: string): readonly string[];
  /** True when all of it is there; false when the stream or the connection was broken off before. */
  ended(): Promise<boolean>;
  /** Waits for RST_STREAM, also behind the end; undefined when the connection ended instead. */
  resetOrClosed(): Promise<ErrorName | number | undefined>;
};

export function createH2Request(stream: H2Stream, connection: number): H2Request {
  const fields = stream.blocks[0]?.fields ?? [];
  const values = (name: string): readonly string[] =>
    fields.filter((field) => field.name === name).map(({ value }) => value);
  return {
    id: stream.id,
    connection,
    fields,
    headers: pairsOf(fields),
    neverIndexed: fields.filter(({ isNeverIndexed }) => isNeverIndexed).map(({ name }) => name),
    method: values(':method').join(', '),
    path: values(':path').join(', '),
    authority: values(':authority').join(', '),
    get body() {
      const { length, sha256, content } = stream;
      return { length, sha256, content };
    },
    get trailers() {
      const block = stream.blocks[1];
      return block === undefined ? undefined : pairsOf(block.fields);
    },
    get isEnded() {
      return stream.isEnded;
    },
    get reset() {
      return stream.resetCode;
    },
    values,
    ended: () => stream.ended(),
    resetOrClosed: () => stream.resetOrClosed(),
  };
}

export function createH2Exchange(request: H2Request, stream: H2Stream, connection: H2Connection): H2Exchange {
  const send = (...frames: readonly (Buffer | string)[]): Promise<boolean> =>
    connection.peer?.send(...frames) ?? Promise.resolve(false);
  const head: H2Exchange['head'] = (status, fields = [], options = {}) =>
    stream.headers([[':status', String(status)], ...fields], options);
  return {
    request,
    connection,
    interim: (status, fields) => head(status, fields),
    head,
    data: (bytes, options) => stream.data(bytes, options),
    trailers: (fields) => stream.headers(fields, { isEnd: true }),
    async response(status, fields = [], body = '') {
      if (body.length === 0) return head(status, fields, { isEnd: true });
      await head(status, fields);
      return stream.data(body, { isEnd: true });
    },
    reset: (code) => stream.reset(code),
    goaway: (lastStream = stream.id, code, debug) => connection.goaway(lastStream, code, debug),
    push(path, promised = 2) {
      const [authority = ''] = request.values(':authority');
      const fields = { ':method': 'GET', ':scheme': 'https', ':authority': authority, ':path': path };
      return send(pushFrame(stream.id, promised, encodeBlock(Object.entries(fields))));
    },
    send,
  };
}

/** The default script: says in JSON what arrived. */
export async function echoStream({ request, interim, response }: H2Exchange): Promise<void> {
  if (request.values('expect').some((value) => value.toLowerCase() === '100-continue')) await interim(100);
  if (!(await request.ended())) return;
  const { method, path: target, headers, body } = request;
  const reported = { method, target, headers, body: { length: body.length, sha256: body.sha256 } };
  const text = method === 'HEAD' ? '' : JSON.stringify(reported);
  await response(200, [['content-type', 'application/json']], text);
}

function pairsOf(fields: readonly Field[]): HeaderList {
  return fields.map(({ name, value }) => [name, value] as const);
}
