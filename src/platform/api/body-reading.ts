// The body of a request: bounded while it is read, JSON that means one thing, text that the database can keep. It must
// not know what the body is for.
import { type JsonError, parseJsonDocument } from '../../base/json-document.ts';
import { InvalidInput } from '../../base/domain-error.ts';
import { type Issue, type Loc, toLocKey } from '../../base/schema.ts';
import { Unreadable } from './problem.ts';

/** Undefined when there is none. Throws InvalidInput or Unreadable. */
export async function readBody(request: Request, maxBytes: number): Promise<unknown> {
  const bytes = await readBytes(request, maxBytes);
  if (bytes.length === 0) return undefined;
  judgeType(request.headers.get('content-type'));
  const reading = parseJsonDocument(decode(bytes));
  if (!reading.ok) throw new InvalidInput([toIssue(reading.error)]);
  const unkept = findUnkept(reading.value, ['body']);
  if (unkept !== undefined) throw new InvalidInput([unkept]);
  return reading.value;
}

/** The first text that PostgreSQL cannot keep as it is: with U+0000, or half of a surrogate pair. */
export function findUnkept(value: unknown, loc: Loc): Issue | undefined {
  const path = pathToUnkept(value);
  if (path === undefined) return undefined;
  const msg = 'Input should be text without U+0000 and without half characters';
  return { loc: [...loc, ...path], msg, type: 'string_unicode' };
}

/** Put together on the way back: nearly every document has none, and some have half a million members. */
function pathToUnkept(value: unknown): Loc | undefined {
  if (typeof value === 'string') return isKept(value) ? undefined : [];
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return pathInList(value);
  for (const [key, member] of Object.entries(value)) {
    if (!isKept(key)) return ['…'];
    const path = pathToUnkept(member);
    if (path !== undefined) return [toLocKey(key), ...path];
  }
  return undefined;
}

function pathInList(list: readonly unknown[]): Loc | undefined {
  for (const [at, member] of list.entries()) {
    const path = pathToUnkept(member);
    if (path !== undefined) return [at, ...path];
  }
  return undefined;
}

function isKept(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

async function readBytes(request: Request, maxBytes: number): Promise<Buffer> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > maxBytes) throw tooLong(maxBytes);
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of request.body ?? []) {
    length += piece.length;
    if (length > maxBytes) throw tooLong(maxBytes);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function tooLong(maxBytes: number): Unreadable {
  return new Unreadable(413, `A body may have at most ${maxBytes} bytes`);
}

function judgeType(type: string | null): void {
  if (type === null || /^application\/(?:[\w.-]+\+)?json(?:$|[ \t]*;)/i.test(type)) return;
  throw new Unreadable(415, 'Send JSON, with Content-Type: application/json');
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new InvalidInput([{ loc: ['body'], msg: 'Input should be UTF-8', type: 'json_invalid' }]);
  }
}

const ERRORS: Readonly<Record<JsonError['kind'], string>> = {
  not_json: 'JSON decode error',
  repeated_name: 'An object names a member twice: leave one',
  too_deep: 'Input is nested too deeply',
};

function toIssue({ kind, position }: JsonError): Issue {
  const loc = position === undefined ? ['body'] : ['body', position];
  return { loc, msg: ERRORS[kind], type: 'json_invalid' };
}
