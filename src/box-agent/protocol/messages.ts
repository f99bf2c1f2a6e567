// The messages of the calls, and their parsers. What the agent sends is hostile: each parser takes the fields that it knows, in
// their bounds, and nothing else. Pure.
import { ProtocolError } from './frame.ts';

export type CallParams =
  | {
      readonly method: 'execute';
      readonly command: string;
      readonly shell: string;
      readonly env: Readonly<Record<string, string>>;
      readonly cwd: string | null;
      /** Without it the command reads the end of its input at once. */
      readonly stdin: boolean;
    }
  /** The head is a FileStat. The first input is a range (`encodeRange`), or the end; then its bytes come. */
  | { readonly method: 'read'; readonly path: string }
  | { readonly method: 'write'; readonly path: string }
  /** Its data are lines (GlobMatch). */
  | { readonly method: 'glob'; readonly path: string; readonly pattern: string; readonly limit: number }
  /** Its data are lines (GrepMatch). */
  | {
      readonly method: 'grep';
      readonly path: string;
      readonly pattern: string;
      readonly glob: string | null;
      readonly limit: number;
    }
  /** To a port of the box's own loopback address. */
  | { readonly method: 'connect'; readonly port: number };

export type Method = CallParams['method'];

export type Started = { readonly pid: number };
export type Ended = { readonly exitCode: number; readonly signal: number };
export type FileStat = {
  readonly size: number;
  readonly mtimeMs: number;
  /** Changes when the file does. */
  readonly version: string;
};
export type GlobMatch = {
  readonly path: string;
  readonly isDirectory: boolean;
  readonly size: number;
  readonly mtimeMs: number;
};
export type GrepMatch = { readonly path: string; readonly line: number; readonly text: string };
export type Searched = { readonly truncated: boolean };
export type Failure = { readonly code: string };
export type Nothing = Readonly<Record<string, never>>;
export type ByteRange = { readonly offset: number; readonly length: number };

/** A line of a search: a path of 4,096 bytes, each of which JSON may write as six. */
export const MAX_LINE_BYTES: number = 32 * 1024;
/** Longer lines of files are cut. */
export const MAX_TEXT_CHARS = 1000;
export const PROXY_PORT = 3128;

/** For the agent, which trusts the host: only the form is checked. */
export function parseCall(payload: Buffer): CallParams {
  const params = parseObject(payload);
  if (typeof params['method'] !== 'string') throw new ProtocolError('a call without a method');
  return params as unknown as CallParams;
}

export function parseStarted(payload: Buffer): Started {
  return { pid: wholeNumber(parseObject(payload)['pid'], 2 ** 22) };
}

export function parseEnded(payload: Buffer): Ended {
  const { exitCode, signal } = parseObject(payload);
  return { exitCode: wholeNumber(exitCode, 255), signal: wholeNumber(signal, 64) };
}

export function parseFileStat(payload: Buffer): FileStat {
  const { size, mtimeMs, version } = parseObject(payload);
  if (typeof version !== 'string' || !/^[0-9a-f-]{1,100}$/.test(version))
    throw new ProtocolError('a file without a valid version');
  return { size: wholeNumber(size), mtimeMs: timeOf(mtimeMs), version };
}

export function parseSearched(payload: Buffer): Searched {
  const { truncated } = parseObject(payload);
  if (typeof truncated !== 'boolean') throw new ProtocolError('a search without its end');
  return { truncated };
}

export function parseNothing(payload: Buffer): Nothing {
  parseObject(payload);
  return {};
}

/** The code alone: a text of the box must not appear in an error of ours. */
export function parseFailure(payload: Buffer): Failure {
  const { code } = parseObject(payload);
  if (typeof code !== 'string' || !/^[A-Z][A-Z0-9_]{1,31}$/.test(code))
    throw new ProtocolError('a failure without a valid code');
  return { code };
}

export function parseGlobMatch(line: Buffer): GlobMatch {
  const { path, isDirectory, size, mtimeMs } = parseObject(line);
  if (typeof isDirectory !== 'boolean') throw new ProtocolError('an entry that is no file and no directory');
  return { path: pathOf(path), isDirectory, size: wholeNumber(size), mtimeMs: timeOf(mtimeMs) };
}

export function parseGrepMatch(text: Buffer): GrepMatch {
  const match = parseObject(text);
  if (typeof match['text'] !== 'string' || match['text'].length > MAX_TEXT_CHARS)
    throw new ProtocolError('a matching line that is too long');
  return {
    path: pathOf(match['path']),
    line: wholeNumber(match['line']),
    text: match['text'].toWellFormed(),
  };
}

const RANGE_BYTES = 16;

export function encodeRange({ offset, length }: ByteRange): Buffer {
  const bytes = Buffer.allocUnsafe(RANGE_BYTES);
  bytes.writeBigUInt64BE(BigInt(offset), 0);
  bytes.writeBigUInt64BE(BigInt(length), 8);
  return bytes;
}

export function decodeRange(bytes: Buffer): ByteRange {
  if (bytes.length !== RANGE_BYTES) throw new ProtocolError('a range of another length');
  return { offset: Number(bytes.readBigUInt64BE(0)), length: Number(bytes.readBigUInt64BE(8)) };
}

export function encodeJson(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** The payload is short, so that its nesting costs nothing. */
function parseObject(payload: Buffer): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(UTF8.decode(payload));
  } catch {
    throw new ProtocolError('a message that is no JSON in UTF-8');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ProtocolError('a message that is no object');
  // A member `__proto__` is an own member of what JSON.parse returns; only own members count.
  return Object.assign(Object.create(null), value);
}

function wholeNumber(value: unknown, max: number = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > max)
    throw new ProtocolError('a number out of bounds');
  return value;
}

/** Of what a Date can hold. */
const MAX_TIME_MS = 8.64e15;

function timeOf(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || Math.abs(value) > MAX_TIME_MS)
    throw new ProtocolError('a time out of bounds');
  return Math.trunc(value);
}

function pathOf(value: unknown): string {
  if (typeof value !== 'string' || value.length > 4096 || value.includes('\0'))
    throw new ProtocolError('a path out of bounds');
  return value.toWellFormed();
}
