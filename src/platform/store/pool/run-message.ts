// What has PostgreSQL run a statement (PostgreSQL manual, "Message Formats"), as one buffer: a write to the socket for each of its
// messages costs more than encoding all of them. Pure.

/** What a named statement takes: how any other value is written depends on the type of its column. */
export type StatementValue = string | number | boolean | Uint8Array | null | undefined;

export type Part = {
  /** Under which the statement is prepared; empty for one that is prepared anew with each run. In ASCII. */
  readonly name: string;
  /** To prepare it with; undefined where the connection has it. */
  readonly text: string | undefined;
  readonly values: readonly StatementValue[];
};

export type Run = {
  /** One after the other, at least one. */
  readonly parts: readonly Part[];
  /** With a BEGIN before them. */
  readonly hasBegin: boolean;
  /** With a COMMIT behind them. */
  readonly hasCommit: boolean;
};

/** Up to the Sync: the server skips what follows an error, so that a failed statement is not committed. */
export function encodeRun({ parts, hasBegin, hasCommit }: Run): Buffer {
  const before = hasBegin ? BEGIN : NOTHING;
  const after = hasCommit ? COMMIT_AND_SYNC : SYNC;
  const binds = parts.map(toBind);
  let length = before.length + after.length;
  for (const bind of binds) length += bind.prepare.length + bind.length + EXECUTE.length;
  const bytes = Buffer.allocUnsafe(length);
  bytes.set(before, 0);
  let at = before.length;
  for (const bind of binds) {
    bytes.set(bind.prepare, at);
    at += bind.prepare.length;
    writeBind(bytes, at, bind);
    at += bind.length;
    bytes.set(EXECUTE, at);
    at += EXECUTE.length;
  }
  bytes.set(after, at);
  return bytes;
}

type Bind = Pick<Part, 'name' | 'values'> & { readonly prepare: Buffer; readonly length: number };

function toBind({ name, text, values }: Part): Bind {
  const prepare = text === undefined ? NOTHING : encodePrepare(name, text);
  return { name, values, prepare, length: bindLength(name, values) };
}

/** The type, the length, an empty portal, the end of the name, two counts of values and one of result formats. */
const BIND_BYTES = 1 + 4 + 1 + 1 + 2 + 2 + 2;
/** The format and the length of a value. */
const VALUE_BYTES = 2 + 4;

function bindLength(name: string, values: readonly StatementValue[]): number {
  let length = BIND_BYTES + name.length + VALUE_BYTES * values.length;
  for (const value of values) length += lengthOf(value);
  return length;
}

function lengthOf(value: StatementValue): number {
  if (value === null || value === undefined) return 0;
  return typeof value === 'object' ? value.length : Buffer.byteLength(String(value));
}

/** No format of results is named: they are texts. */
function writeBind(bytes: Buffer, start: number, { name, values, length }: Bind): void {
  let at = bytes.writeUInt8(BIND, start);
  at = bytes.writeInt32BE(length - 1, at);
  at = bytes.writeUInt8(0, at);
  at += bytes.write(name, at, 'latin1');
  at = bytes.writeUInt8(0, at);
  at = bytes.writeInt16BE(values.length, at);
  for (const value of values)
    at = bytes.writeInt16BE(typeof value === 'object' && value !== null ? 1 : 0, at);
  at = bytes.writeInt16BE(values.length, at);
  for (const value of values) at = writeValue(bytes, at, value);
  bytes.writeInt16BE(0, at);
}

function writeValue(bytes: Buffer, at: number, value: StatementValue): number {
  if (value === null || value === undefined) return bytes.writeInt32BE(-1, at);
  const start = at + 4;
  if (typeof value !== 'object') {
    const length = bytes.write(String(value), start);
    bytes.writeInt32BE(length, at);
    return start + length;
  }
  bytes.writeInt32BE(value.length, at);
  bytes.set(value, start);
  return start + value.length;
}

const BIND = 0x42;
const NOTHING = Buffer.alloc(0);
/** Of nothing to the unnamed statement: two names, and three counts of none. */
const BIND_NOTHING = message('B', '\0'.repeat(2 + 3 * 2));
/** Of the unnamed portal, without a limit on rows. */
const EXECUTE = message('E', '\0'.repeat(1 + 4));
const SYNC = message('S', '');
const BEGIN = Buffer.concat([encodeParse('', 'begin'), BIND_NOTHING, EXECUTE]);
const COMMIT = Buffer.concat([encodeParse('', 'commit'), BIND_NOTHING, EXECUTE]);
const COMMIT_AND_SYNC = Buffer.concat([COMMIT, SYNC]);

/**
 * Closed, parsed and described. A run that failed may have left the statement behind; to close one that does not exist is no
 * error.
 */
function encodePrepare(name: string, text: string): Buffer {
  return Buffer.concat([message('C', `S${name}\0`), encodeParse(name, text), message('D', `S${name}\0`)]);
}

/** The server finds out the types of the parameters, of which the count of none at the end names none. */
function encodeParse(name: string, text: string): Buffer {
  return message('P', `${name}\0${text}\0\0\0`);
}

function message(type: string, body: string): Buffer {
  const bytes = Buffer.from(`${type}\0\0\0\0${body}`);
  bytes.writeInt32BE(bytes.length - 1, 1);
  return bytes;
}
