// A second reading of HTTP/1.1 heads for the fuzz targets, by regular expressions over the whole text. It must not use the
// product's own.

export type Field = readonly [name: string, value: string];
export type SimpleHead = {
  readonly start: string;
  readonly fields: readonly Field[];
  readonly length: number;
};

const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;
const LOOKALIKE = /^(?:transfer[-_]encoding|content[-_]length)$/i;

/** The head that the text begins with, up to its blank line; undefined where there is none, or an invalid one. */
export function readHead(text: string, startLine: RegExp): SimpleHead | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [start = '', ...lines] = text.slice(0, end).split('\r\n');
  const fields = lines.map((line) => FIELD.exec(line));
  if (!startLine.test(start) || fields.some((field) => field === null)) return undefined;
  const read = fields.map((field): Field => [field?.[1] ?? '', (field?.[2] ?? '').replace(/[ \t]+$/, '')]);
  if (read.some(([name]) => name.includes('_') && LOOKALIKE.test(name))) return undefined;
  return { start, fields: read, length: end + 4 };
}

/** The body that fields announce, by RFC 9112 §6 without its tolerances. */
export function readFraming(fields: readonly Field[], minor: number): string {
  const lengths = valuesOf(fields, 'content-length');
  const codings = valuesOf(fields, 'transfer-encoding');
  if (lengths.length + codings.length === 0) return 'none';
  if (lengths.length + codings.length > 1) return 'error';
  if (codings.length === 1)
    return minor === 1 && codings[0]?.toLowerCase() === 'chunked' ? 'chunked' : 'error';
  const [length = ''] = lengths;
  if (!/^(?:0|[1-9][0-9]{0,15})$/.test(length) || Number(length) > Number.MAX_SAFE_INTEGER) return 'error';
  return length === '0' ? 'none' : `length ${length}`;
}

function valuesOf(fields: readonly Field[], wanted: string): readonly string[] {
  return fields.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value);
}
