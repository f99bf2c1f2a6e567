// A run of named statements, in the form in which pg takes queries. The columns of its result are described when the statement is
// prepared, once on each connection: pg's own query has them described and decoded with each result, at more cost than the rows.
import { encodeRun, type StatementValue } from './run-message.ts';
import type { Group, GroupResult } from './statement-group.ts';

type Column = { readonly name: string; readonly parse: (text: string) => unknown };

type Prepared = {
  readonly text: string;
  readonly columns: readonly Column[];
  /** With all columns: a copy of it has its shape at once, where a row that grows would change it with each column. */
  readonly emptyRow: Readonly<Record<string, unknown>>;
};

/** Of one connection. */
export type StatementSession = {
  /** The statements that it has, by name. Their columns cannot change: the server rejects a run then. */
  readonly prepared: Map<string, Prepared>;
  /** For the type with this number. */
  findParser(type: number): Column['parse'];
};

export type NamedStatement = {
  /** Empty where the statement is prepared anew with each run. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly StatementValue[];
};
/** At least one statement. */
export type StatementRun = Group & { readonly statements: readonly NamedStatement[] };

/** The results of all statements, or those of the statements before the one that failed. */
export type RunDone = (error: unknown, results: readonly GroupResult[]) => void;

/** What pg's connection has of what is used here. */
type Wire = {
  readonly stream: { readonly writable: boolean; write(bytes: Uint8Array): unknown };
  sendCopyFail(message: string): void;
};
type RowDescription = {
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[];
};

type Part = NamedStatement & {
  prepared: Prepared | undefined;
  readonly rows: unknown[];
};

/** pg calls it by these names. */
export class StatementQuery {
  /** pg puts its timeout around it, which calls it without results. */
  callback: (error: unknown, results?: readonly GroupResult[]) => void;
  readonly #session: StatementSession;
  readonly #group: Group;
  readonly #parts: readonly Part[];
  /** Of which the server has sent the end. */
  readonly #results: GroupResult[] = [];
  #isBegun: boolean;
  #tag = '';
  /** Of a value that cannot be read: what the server still sends is read all the same. */
  #error: unknown;

  constructor(session: StatementSession, { statements, hasBegin, hasCommit }: StatementRun, done: RunDone) {
    this.#session = session;
    this.#group = { hasBegin, hasCommit };
    this.#isBegun = !hasBegin;
    this.#parts = statements.map(({ name, text, values }) => ({
      ...{ name, text, values },
      prepared: session.prepared.get(name),
      rows: [],
    }));
    this.callback = (error, results = []) => done(error, results);
  }

  submit({ stream }: Wire): Error | null {
    const other = this.#parts.find(({ prepared, text }) => prepared !== undefined && prepared.text !== text);
    if (other !== undefined) return new Error(`two statements are named ${other.name}`);
    const parts = this.#parts.map(({ name, text, values, prepared }) => ({
      ...{ name, values },
      text: prepared === undefined ? text : undefined,
    }));
    // Where it is not writable, pg reports the end of the connection.
    if (stream.writable) stream.write(encodeRun({ ...this.#group, parts }));
    return null;
  }

  handleRowDescription({ fields }: RowDescription): void {
    const part = this.#part;
    const columns = fields.map(({ name, dataTypeID }) => ({
      name,
      parse: this.#session.findParser(dataTypeID),
    }));
    if (part !== undefined) part.prepared = toPrepared(part.text, columns);
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const part = this.#part;
    // Nobody gets the rows before a COMMIT. An error of one, found once it is committed, would be taken for a rollback.
    if (part?.prepared === undefined || (this.#group.hasCommit && part === this.#parts.at(-1))) return;
    try {
      part.rows.push(toRow(part.prepared, fields));
    } catch (error) {
      this.#error ??= error;
    }
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#tag = text;
    if (!this.#isBegun) this.#isBegun = true;
    else if (this.#part !== undefined) this.#results.push(toResult(text, this.#part.rows));
  }

  handleReadyForQuery(): void {
    // One without a result has no description.
    for (const { name, text, prepared } of this.#parts)
      if (name !== '') this.#session.prepared.set(name, prepared ?? toPrepared(text, []));
    if (this.#error !== undefined) return this.callback(this.#error);
    if (this.#group.hasCommit) this.#results[this.#parts.length - 1] = toResult(this.#tag, []);
    this.callback(undefined, this.#results);
  }

  handleError(error: unknown): void {
    this.callback(error, this.#results);
  }

  /** The one whose result comes next. */
  get #part(): Part | undefined {
    return this.#parts[this.#results.length];
  }

  // A named statement is not empty, does not stop at a number of rows, and does not copy.
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyData(): void {}
  handleCopyInResponse(connection: Wire): void {
    connection.sendCopyFail('a named statement copies nothing');
  }
}

/** `SELECT 1`, `INSERT 0 1`, `COMMIT` */
function toResult(tag: string, rows: readonly unknown[]): GroupResult {
  const [command = '', ...counts] = tag.split(' ');
  return { command, rowCount: Number(counts.at(-1) ?? 0), rows };
}

function toPrepared(text: string, columns: readonly Column[]): Prepared {
  return { text, columns, emptyRow: Object.fromEntries(columns.map(({ name }) => [name, null])) };
}

function toRow({ columns, emptyRow }: Prepared, fields: readonly (string | null)[]): unknown {
  const row: Record<string, unknown> = { ...emptyRow };
  for (let at = 0; at < columns.length; at += 1) {
    const { name, parse } = columns[at] as Column;
    const text = fields[at] ?? null;
    if (text !== null) row[name] = parse(text);
  }
  return row;
}
