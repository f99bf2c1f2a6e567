// Multipart bodies of runs, as the public clients in JavaScript and Python write them.
import type { SentRun } from './ingestion-scene.ts';

export type SentPart = {
  readonly name: string;
  readonly body: string | Uint8Array;
  /** Header fields; those of a client when absent. */
  readonly fields?: readonly string[];
};

export type Style = 'javascript' | 'python';

export const BOUNDARY = '----FormBoundaryOfATest';
export const MULTIPART = `multipart/form-data; boundary=${BOUNDARY}`;

const PAYLOADS = ['inputs', 'outputs', 'events', 'extra', 'error', 'serialized'];

/** The run, and each of its payloads, as parts. */
export function partsOf(kind: 'post' | 'patch', run: SentRun): readonly SentPart[] {
  const fields = Object.entries(run).filter(([name]) => PAYLOADS.includes(name));
  const rest = Object.fromEntries(Object.entries(run).filter(([name]) => !PAYLOADS.includes(name)));
  return [
    { name: `${kind}.${run.id}`, body: JSON.stringify(rest) },
    ...fields.map(([name, value]) => ({ name: `${kind}.${run.id}.${name}`, body: JSON.stringify(value) })),
  ];
}

export function encodePart(part: SentPart, style: Style = 'javascript'): readonly Uint8Array[] {
  const body = Buffer.from(part.body);
  const { fields = fieldsOf(body.length, style) } = part;
  const lines = [`--${BOUNDARY}`, `Content-Disposition: form-data; name="${part.name}"`, ...fields, '', ''];
  return [Buffer.from(lines.join('\r\n')), body, Buffer.from('\r\n')];
}

function fieldsOf(length: number, style: Style): readonly string[] {
  return style === 'javascript'
    ? [`Content-Type: application/json; length=${length}`]
    : ['Content-Type: application/json', `Content-Length: ${length}`];
}

export function encodeParts(parts: readonly SentPart[], style?: Style): Buffer {
  return Buffer.concat([...parts.flatMap((part) => encodePart(part, style)), END]);
}

export const END: Buffer = Buffer.from(`--${BOUNDARY}--\r\n`);
