// The runs that a storm sends: what a POST and a PATCH of each says, and how several of them become the body of one request.
import { randomBytes, randomUUID } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { Random } from '../../http1/mutation.ts';

type Fields = Readonly<Record<string, unknown>>;
export type Kind = 'post' | 'patch';

export type SentRun = {
  readonly id: string;
  readonly project: string;
  readonly post: Fields;
  readonly patch: Fields;
};

export type Part = { readonly run: SentRun; readonly kind: Kind };

/** The fields that either part alone brings; both bring `extra`, and that of the PATCH wins whatever the order. */
export const OWN_FIELDS: Readonly<Record<Kind, readonly string[]>> = {
  post: ['name', 'run_type', 'inputs', 'serialized'],
  patch: ['end_time', 'outputs', 'events'],
};

const PAYLOADS: ReadonlySet<string> = new Set([
  'inputs',
  'outputs',
  'events',
  'extra',
  'error',
  'serialized',
]);
const DAY_MS = 24 * 3_600_000;
/** Above what a request holds in memory. */
const LARGE_BYTES = 2.5 * 2 ** 20;

/** A root and those below it. */
export function createTrace(project: string, nowMs: number, random: Random): readonly SentRun[] {
  // Some in other partitions.
  const startMs = nowMs - (random(10) === 0 ? random(3) * DAY_MS : 0);
  const orders: string[] = [];
  return Array.from({ length: 1 + random(4) }, (_, at) => {
    const id = randomUUID();
    const time = new Date(startMs + at);
    const above = at === 0 ? undefined : orders[random(orders.length)];
    const order = [above, `${toSegment(time)}Z${id}`].filter((one) => one !== undefined).join('.');
    orders.push(order);
    return createRun({ id, project, order, time }, random);
  });
}

type Place = {
  readonly id: string;
  readonly project: string;
  readonly order: string;
  readonly time: Date;
};

function createRun({ id, project, order, time }: Place, random: Random): SentRun {
  const ids = order.split('.').map((segment) => segment.slice(segment.indexOf('Z') + 1));
  const place = {
    ...{ id, dotted_order: order, trace_id: ids[0] },
    ...(ids.length > 1 ? { parent_run_id: ids.at(-2) } : {}),
  };
  const size = random(50) === 0 ? LARGE_BYTES : random(2_000);
  const post = {
    ...{ ...place, session_name: project, start_time: time.toISOString() },
    ...{ name: `run ${id}`, run_type: random(2) === 0 ? 'llm' : 'tool', tags: [`tag ${id}`] },
    ...{ inputs: { of: id, text: randomBytes(size).toString('base64') }, serialized: { graph: id } },
    extra: { metadata: { by: 'post', of: id } },
  };
  const patch = {
    ...place,
    // As some clients do.
    ...(random(2) === 0 ? { session_name: project } : {}),
    end_time: new Date(time.getTime() + random(5_000)).toISOString(),
    outputs: { of: id, usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } },
    ...{ events: [{ name: 'new_token', time: time.toISOString() }] },
    ...(random(5) === 0 ? { error: `Error: of ${id}` } : {}),
    extra: { metadata: { by: 'patch', of: id } },
  };
  return { id, project, post, patch };
}

function toSegment(time: Date): string {
  return `${time.toISOString().replaceAll(/[-:]|\.\d{3}Z$/g, '')}${String(time.getMilliseconds()).padStart(3, '0')}000`;
}

/** The one attachment that multipart bodies have of each run that they create. */
export const ATTACHMENT = 'note';

export type Body = {
  readonly method: 'POST' | 'PATCH';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
  /** Ids of the runs whose attachment it has. */
  readonly attached: readonly string[];
};

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** By one of the ways that clients have; one part alone may also go by itself. */
export function toBody(parts: readonly Part[], random: Random): Body {
  const [first] = parts;
  const way = random(parts.length === 1 ? 5 : 4);
  if (way === 4 && first !== undefined) return toSingle(first);
  if (way === 3) return toBatch(parts);
  const boundary = `storm-${randomUUID()}`;
  const plain = toMultipart(parts, boundary);
  const type = { 'Content-Type': `multipart/form-data; boundary=${boundary}` };
  const attached = parts.filter(({ kind }) => kind === 'post').map(({ run }) => run.id);
  const request = { method: 'POST', path: '/runs/multipart', attached } as const;
  if (way === 0) return { ...request, headers: type, bytes: plain };
  const [encoding, bytes] =
    way === 1 ? (['gzip', gzipSync(plain)] as const) : (['zstd', zstdCompressSync(plain)] as const);
  return { ...request, headers: { ...type, 'Content-Encoding': encoding }, bytes };
}

function toSingle({ run, kind }: Part): Body {
  const bytes = Buffer.from(JSON.stringify(run[kind]));
  const request =
    kind === 'post'
      ? ({ method: 'POST', path: '/runs' } as const)
      : ({ method: 'PATCH', path: `/runs/${run.id}` } as const);
  return { ...request, headers: JSON_TYPE, bytes, attached: [] };
}

function toBatch(parts: readonly Part[]): Body {
  const of = (wanted: Kind): readonly Fields[] =>
    parts.filter(({ kind }) => kind === wanted).map(({ run, kind }) => run[kind]);
  const bytes = Buffer.from(JSON.stringify({ post: of('post'), patch: of('patch') }));
  return { method: 'POST', path: '/runs/batch', headers: JSON_TYPE, bytes, attached: [] };
}

function toMultipart(parts: readonly Part[], boundary: string): Buffer {
  const fields = parts.flatMap(({ run, kind }) => {
    const entries = Object.entries(run[kind]);
    const facts = Object.fromEntries(entries.filter(([name]) => !PAYLOADS.has(name)));
    const payloads = entries.filter(([name]) => PAYLOADS.has(name));
    const attachment = [`attachment.${run.id}.${ATTACHMENT}`, { of: run.id }] as const;
    return [
      ...(kind === 'post' ? [attachment] : []),
      [`${kind}.${run.id}`, facts] as const,
      ...payloads.map(([name, value]) => [`${kind}.${run.id}.${name}`, value] as const),
    ];
  });
  const written = fields.map(([name, value]) => {
    const text = JSON.stringify(value);
    const type = `application/json; length=${Buffer.byteLength(text)}`;
    return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`;
  });
  return Buffer.from(`${written.join('')}--${boundary}--\r\n`);
}
