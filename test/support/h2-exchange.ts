// One stream at the recording origin: the unchanged request of the client, and the functions with which a script responds.
// A script writes frames itself, in any order, including forbidden ones.
//
//   async respond({ request, interim, head, data, trailers }) {
//     await request.ended();                       // or respond before; a script that does nothing is silent
//     await interim(103, [['link', '</a>']]);
//     await head(200, [['content-type', 'text/plain']]);
//     await data('piece');                         // last one: data('piece', { isEnd: true })
//     await trailers([['grpc-status', '0']]);
//   }
//   Also: response(status, fields, body), reset(code), goaway(lastStream, code), push(path), send(frames...), connection
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
  /** Sends within the client's windows; false when the stream was reset or closed. */
  data(bytes: string | Buffer, options?: { readonly isEnd?: boolean }): Promise<boolean>;
  trailers(fields: readonly SentField[]): Promise<boolean>;
  /** A complete response: head and body. */
  response(status: number, fields?: readonly SentField[], body?: string | Buffer): Promise<boolean>;
  reset(code?: ErrorName | number): Promise<boolean>;
  /** GOAWAY; without a number, one that includes this stream. */
  goaway(lastStream?: number, code?: ErrorName | number, debug?: string): Promise<boolean>;
  /** Promises a GET of this path on stream 2 (or another) without sending it. */
  push(path: string, promised?: number): Promise<boolean>;
  /** Sends any frames. */
  send(...frames: readonly (Buffer | string)[]): Promise<boolean>;
};

/** What the client sent on a stream; grows until the stream has ended. */
export type H2Request = {
  readonly id: number;
  /** The number of its connection, counted from 0. */
  readonly connection: number;
  /** The head in wire order, with the pseudo-header fields. */
  readonly fields: readonly Field[];
  readonly headers: HeaderList;
  /** Names of the fields that arrived as never indexed. */
  readonly neverIndexed: readonly string[];
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  /** What has arrived so far; the content is limited to 1 MiB. */
  readonly body: H2Body;
  readonly trailers: HeaderList | undefined;
  readonly isEnded: boolean;
  /** The code of the received RST_STREAM. */
  readonly reset: ErrorName | number | undefined;
  /** The values of every field of this name. */
  values(name: string): readonly string[];
  /** True when the request is complete; false when the stream or the connection was aborted before. */
  ended(): Promise<boolean>;
  /** Waits for RST_STREAM, also after the end; undefined when the connection closed instead. */
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

/** The default script: responds with the received request as JSON. */
export async function echoStream({ request, interim, response }: H2Exchange): Promise<void> {
  if (request.values('expect').some((value) => value.toLowerCase() === '100-continue')) await interim(100);
  if (!(await request.ended())) return;
  const { method, path: target, headers, body } = request;
  const received = { method, target, headers, body: { length: body.length, sha256: body.sha256 } };
  const text = method === 'HEAD' ? '' : JSON.stringify(received);
  await response(200, [['content-type', 'application/json']], text);
}

function pairsOf(fields: readonly Field[]): HeaderList {
  return fields.map(({ name, value }) => [name, value] as const);
}
