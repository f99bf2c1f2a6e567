// The routes of the API of the box host, for the platform of the same machine.
import { z } from '../../base/schema.ts';
import { jsonResponse, type HttpResponse } from '../../base/http/http-response.ts';
import { BoxError } from '../box-error.ts';
import { policyDocument, startDocument } from '../box-document.ts';
import type { Boxes } from '../boxes.ts';
import type { Changes } from '../changes.ts';
import type { BoxEngine } from '../engine.ts';
import type { Log } from '../../base/log.ts';
import { acknowledgement, type RecordBook } from '../sidecars/record-book.ts';

export type BoxApiTarget = {
  readonly boxes: Boxes;
  readonly engine: BoxEngine;
  readonly changes: Changes;
  readonly records: RecordBook;
  readonly log: Log;
  /** The runtime that it was started for. */
  readonly configured: string;
  /** The process ends. */
  end(): void;
};

export type BoxRequest<Body> = {
  /** Of the path; empty where it names no box. */
  readonly id: string;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Body;
  /** The bytes of a request of a route with `isUpload`. */
  readonly upload: AsyncIterable<Uint8Array>;
  /** Aborts when the caller leaves, or the box host ends. */
  readonly signal: AbortSignal;
};

export type BoxRoute = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Its parameter `{id}` is a UUID. */
  readonly path: string;
  /** Undefined: the request has no body. */
  readonly body: z.ZodType | undefined;
  /** It reads the bytes of the body itself. */
  readonly isUpload?: true;
  handle(target: BoxApiTarget, request: BoxRequest<never>): Promise<HttpResponse>;
};

function route<B = undefined>(
  method: BoxRoute['method'],
  path: string,
  body: z.ZodType<B> | undefined,
  handle: (target: BoxApiTarget, request: BoxRequest<B>) => Promise<HttpResponse>,
): BoxRoute {
  return { method, path, body, handle };
}

/** How long a reader of records waits for the next one. */
const RECORDS_WAIT_MS = 20_000;

export const boxRoutes: readonly BoxRoute[] = [
  route('GET', '/v1/status', undefined, async ({ engine, configured }) =>
    jsonResponse(200, {
      ...{ kind: engine.kind, configured, version: engine.version, pid: process.pid },
      capabilities: await engine.capabilities(),
    }),
  ),
  route('POST', '/v1/end', undefined, async ({ boxes, end }) => {
    if (boxes.list().length > 0) throw new BoxError('failed', 'There are boxes: remove them');
    end();
    return { status: 204 };
  }),
  route('GET', '/v1/boxes', undefined, async ({ boxes }) => jsonResponse(200, { boxes: boxes.list() })),
  route('PUT', '/v1/boxes/{id}', startDocument, async ({ boxes, engine: { kind } }, { id, body }) => {
    const { runtime = kind } = body.box;
    if (runtime !== kind) throw new BoxError('failed', otherRuntime(runtime, kind));
    return jsonResponse(200, { ...(await boxes.start({ ...body.box, id }, body.policy)), runtime: kind });
  }),
  route('PUT', '/v1/boxes/{id}/policy', policyDocument, async ({ boxes }, { id, body }) =>
    jsonResponse(200, await boxes.apply(id, body)),
  ),
  route('POST', '/v1/boxes/{id}/stop', undefined, async ({ boxes }, { id }) => {
    await boxes.stop(id);
    return { status: 204 };
  }),
  route('DELETE', '/v1/boxes/{id}', undefined, async ({ boxes }, { id }) => {
    await boxes.remove(id);
    return { status: 204 };
  }),
  route('GET', '/v1/changes', undefined, async ({ changes }, { signal }) => ({
    status: 200,
    fields: { 'Content-Type': 'application/x-ndjson' },
    body: lines(changes.read(signal)),
  })),
  route('POST', '/v1/records', z.strictObject({ acknowledged: acknowledgement.optional() }), readRecords),
];

function otherRuntime(needed: string, kind: string): string {
  return (
    `The sandbox needs the runtime "${needed}", and this machine has "${kind}" now: ` +
    'delete the sandbox, or have sandboxes.runtime of the platform corrected'
  );
}

async function* lines(counts: AsyncIterable<number>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const count of counts) yield Buffer.from(`{"changes":${count}}\n`);
}

/** The next batch, once the one before is stored; 204 when none came for a while. */
async function readRecords(
  { records }: BoxApiTarget,
  { body, signal }: BoxRequest<{ readonly acknowledged?: z.output<typeof acknowledgement> | undefined }>,
): Promise<HttpResponse> {
  if (body.acknowledged) records.acknowledge(body.acknowledged);
  const batch = await records.next(AbortSignal.any([signal, AbortSignal.timeout(RECORDS_WAIT_MS)]));
  if (batch === undefined) return { status: 204 };
  const { boxId, source, firstNumber, records: texts } = batch;
  const numbered = texts.map((text, i) => `{"number":${firstNumber + i},${text.slice(1)}`);
  return {
    status: 200,
    fields: { 'Content-Type': 'application/json' },
    body: `{"box_id":"${boxId}","source":"${source}","records":[${numbered.join(',')}]}\n`,
  };
}
