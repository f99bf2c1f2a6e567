// The header of a part of a multipart/form-data body (RFC 7578), and the boundary that the request names. Pure.
import { BodyError } from './body-error.ts';

export type HeaderLimits = {
  /** Of the header of one part. */
  readonly headerBytes: number;
  /** Of the name of one part. */
  readonly nameChars: number;
};

export type PartHeader = {
  readonly name: string;
  readonly fileName: string | undefined;
  /** By their names in lower case; the values of a repeated field are joined. */
  readonly fields: ReadonlyMap<string, string>;
};

export const HEADER_FIELDS = 32;

/** Throws a BodyError for another type than multipart/form-data, or without a valid boundary. */
export function readBoundary(contentType: string | undefined): string {
  const match = /^multipart\/form-data[ \t]*(;.*)?$/i.exec(contentType ?? '');
  if (match === null)
    throw new BodyError('content_type', 'Send a multipart body, with Content-Type: multipart/form-data');
  const [boundary = '', ...more] = readParameters(match[1] ?? '')?.get('boundary') ?? [];
  // RFC 2046 §5.1.1.
  if (more.length > 0 || !/^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/.test(boundary))
    throw malformed('Content-Type must have one boundary of 1 to 70 characters');
  return boundary;
}

/** `header` has its values in Latin-1, by names in lower case. Throws a BodyError. */
export function readPartHeader(
  header: Readonly<Record<string, readonly string[]>>,
  { headerBytes, nameChars }: HeaderLimits,
): PartHeader {
  const sent = Object.entries(header);
  // ": " and the end of a line.
  const sizes = sent.flatMap(([name, values]) => values.map((value) => name.length + value.length + 4));
  if (sizes.length > HEADER_FIELDS) throw tooLarge(`A part has more than ${HEADER_FIELDS} header fields`);
  if (sizes.reduce((sum, size) => sum + size, 0) > headerBytes)
    throw tooLarge(`The header of a part is larger than ${headerBytes} bytes`);
  const fields = new Map(sent.map(([name, values]) => [name, toText(values.join(', '))] as const));
  const match = /^form-data[ \t]*(;.*)?$/i.exec(fields.get('content-disposition') ?? '');
  const parameters = readParameters(match?.[1] ?? '');
  const [name, ...names] = parameters?.get('name') ?? [];
  const [fileName, ...fileNames] = parameters?.get('filename') ?? [];
  if (name === undefined || names.length > 0 || fileNames.length > 0)
    throw malformed('Each part must have Content-Disposition: form-data with one name');
  if (name.length > nameChars) throw tooLarge(`The name of a part is longer than ${nameChars} characters`);
  return { name, fileName, fields };
}

const PARAMETER = /[ \t]*;[ \t]*([!#$%&'*+.^`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s";\\]+))[ \t]*/y;

/** The values of each parameter by its name in lower case; undefined for a text that is no list of parameters. */
function readParameters(text: string): ReadonlyMap<string, readonly string[]> | undefined {
  const found = new Map<string, string[]>();
  PARAMETER.lastIndex = 0;
  let end = 0;
  for (let match = PARAMETER.exec(text); match !== null; match = PARAMETER.exec(text)) {
    const [, name = '', quoted, token = ''] = match;
    // Clients escape quotes and nothing else: a backslash before another character is one of a Windows path.
    const value = quoted?.replaceAll(/\\(["\\])/g, '$1') ?? token;
    found.set(name.toLowerCase(), [...(found.get(name.toLowerCase()) ?? []), value]);
    end = PARAMETER.lastIndex;
  }
  return end === text.length ? found : undefined;
}

/** RFC 7578 §5.1: names are UTF-8. Dicer reads a header as Latin-1. */
function toText(latin1: string): string {
  if (ASCII.test(latin1)) return latin1;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(latin1, 'latin1'));
  } catch {
    throw malformed('The header of a part is not UTF-8');
  }
}

/** As nearly all are: a decoder for each field of ten thousand parts takes a tenth of a second. */
// oxlint-disable-next-line no-control-regex
const ASCII = /^[\0-\x7f]*$/;

function malformed(message: string): BodyError {
  return new BodyError('malformed_multipart', message);
}

function tooLarge(message: string): BodyError {
  return new BodyError('too_large', message);
}
