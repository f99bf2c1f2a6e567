// The bodies of the benchmark of traces: runs as clients send them, large ones, and hostile ones.
import { randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { formatSegment } from '../../src/platform/traces/runs/run-time.ts';

export type Body = {
  readonly path: '/runs/multipart' | '/runs/batch';
  readonly fields: Readonly<Record<string, string>>;
  /** Made for each request. */
  content(): Buffer | Readable;
};

const MIB = 1024 * 1024;
const BOUNDARY = 'x'.repeat(32);
const MULTIPART = { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}` };
const JSON_TYPE = { 'Content-Type': 'application/json' };
const END = Buffer.from(`--${BOUNDARY}--\r\n`);

type Part = readonly [name: string, body: string | Buffer];

function encodePart([name, body]: Part): Buffer {
  const length = Buffer.byteLength(body);
  const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: application/json; length=${length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(body), Buffer.from('\r\n')]);
}

const encode = (parts: readonly Part[]): Buffer => Buffer.concat([...parts.map(encodePart), END]);

/** A root run of now, without its payloads. */
export function newRun(name = 'step') {
  const id = randomUUID();
  const start = new Date().toISOString().replace('Z', '000Z');
  return {
    ...{ id, trace_id: id, dotted_order: formatSegment(start, id), name, run_type: 'llm' },
    ...{ start_time: start, end_time: start, session_name: 'bench', tags: ['bench'] },
  };
}

/** About 1.2 KB of payloads, as of a call of a model. */
function payloadsOf(at: number): Readonly<Record<string, string>> {
  const text = `question ${at}: ${randomBytes(150).toString('base64')}`;
  const response = `response ${at}: ${randomBytes(300).toString('base64')}`;
  const usage = {
    input_tokens: at % 1_000,
    output_tokens: at % 300,
    total_tokens: (at % 1_000) + (at % 300),
  };
  return {
    inputs: JSON.stringify({ messages: [{ role: 'user', content: text }] }),
    outputs: JSON.stringify({ message: { role: 'assistant', content: response }, usage_metadata: usage }),
    extra: JSON.stringify({
      metadata: { thread_id: `thread-${at % 50}`, version: '1.0.0' },
      runtime: { sdk: 'bench' },
    }),
  };
}

/** Multipart bodies of `size` runs each, zstd as clients send them. */
export function runBodies(count: number, size: number): readonly Body[] {
  return Array.from({ length: count / size }, (_, body) => {
    const parts = Array.from({ length: size }, (_one, at): readonly Part[] => {
      const run = newRun();
      const fields = Object.entries(payloadsOf(body * size + at));
      return [
        [`post.${run.id}`, JSON.stringify(run)],
        ...fields.map(([name, json]): Part => [`post.${run.id}.${name}`, json]),
      ];
    });
    const content = zstdCompressSync(encode(parts.flat()));
    return {
      path: '/runs/multipart',
      fields: { ...MULTIPART, 'Content-Encoding': 'zstd' },
      content: () => content,
    };
  });
}

/** How the content of a body is sent, with the MiB of inputs that are nearly 20 MiB then: lines in base64 take three quarters. */
export const CODINGS = {
  identity: { mib: 19, encode: (content: Buffer): Buffer => content },
  gzip: { mib: 25, encode: (content: Buffer): Buffer => gzipSync(content, { level: 1 }) },
  zstd: { mib: 25, encode: (content: Buffer): Buffer => zstdCompressSync(content) },
} as const;

/** A run whose inputs take nearly 20 MiB as they are sent. */
export function largeBody(path: Body['path'], coding: keyof typeof CODINGS = 'identity'): Body {
  const run = newRun('large');
  const { mib, encode: code } = CODINGS[coding];
  const lines = Array.from({ length: mib * 16 }, () => randomBytes(3 * 16_000).toString('base64'));
  const inputs = JSON.stringify({ lines });
  const content = code(
    path === '/runs/multipart'
      ? encode([
          [`post.${run.id}`, JSON.stringify(run)],
          [`post.${run.id}.inputs`, inputs],
        ])
      : Buffer.from(`{"post":[${JSON.stringify(run).slice(0, -1)},"inputs":${inputs}}]}`),
  );
  const type = path === '/runs/multipart' ? MULTIPART : JSON_TYPE;
  const fields = coding === 'identity' ? type : { ...type, 'Content-Encoding': coding };
  return { path, fields, content: () => content };
}

export type Hostile = Body & { readonly name: string; readonly status: number };

export function hostileBodies(): readonly Hostile[] {
  const { id } = newRun();
  const bomb = encode([[`post.${id}.inputs`, `"${'x'.repeat(250 * MIB)}"`]]);
  const [gzip, zstd] = [gzipSync(bomb), zstdCompressSync(bomb)];
  const million = zstdCompressSync(
    Buffer.concat([...Array.from({ length: 1_000_000 }, () => SMALL_PART), END]),
  );
  const deep = Buffer.from(`{"post":[{"inputs":${'['.repeat(19 * MIB)}`);
  const values = Buffer.from(`{"post":[{"inputs":[${'0,'.repeat(9 * MIB)}0]}]}`);
  const names = Buffer.from(`{"post":[{"inputs":{${'"":0,'.repeat(3 * MIB)}"":0}}]}`);
  const of = (path: Body['path'], fields: Body['fields'], content: Buffer): Body => ({
    path,
    fields,
    content: () => content,
  });
  const multipart = (coding: string, content: Buffer): Body =>
    of('/runs/multipart', { ...MULTIPART, 'Content-Encoding': coding }, content);
  return [
    { name: 'gzip bomb of 250 MiB', status: 413, ...multipart('gzip', gzip) },
    { name: 'zstd bomb of 250 MiB', status: 413, ...multipart('zstd', zstd) },
    {
      name: 'endless part',
      status: 413,
      path: '/runs/multipart',
      fields: MULTIPART,
      content: () => Readable.from(endless(id)),
    },
    { name: 'a million parts', status: 413, ...multipart('zstd', million) },
    { name: '19 Mi levels', status: 422, ...of('/runs/batch', JSON_TYPE, deep) },
    { name: '9 Mi values', status: 422, ...of('/runs/batch', JSON_TYPE, values) },
    { name: '3 Mi names', status: 422, ...of('/runs/batch', JSON_TYPE, names) },
  ];
}

const SMALL_PART = encodePart([`post.${randomUUID()}.inputs`, '1']);

function* endless(id: string): Generator<Buffer> {
  yield encodePart([`post.${id}.inputs`, '"']).subarray(0, -2);
  const piece = Buffer.alloc(64 * 1024, 'x');
  for (;;) yield piece;
}
