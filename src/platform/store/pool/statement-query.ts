// A run of a named statement, in the form in which pg takes queries. The columns of its result are described when the statement is
// prepared, once on each connection: pg's own query has them described and decoded with each result, at more cost than the rows.
import { encodeRun, type StatementValue } from './run-message.ts';
import type { Done, Group } from '../statement-group.ts';

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

export type StatementRun = Group & {
  /** Empty where the statement is prepared anew with each run. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly StatementValue[];
};

/** What pg's connection has of what is used here. */
type Wire = {
  readonly stream: { readonly writable: boolean; write(bytes: Uint8Array): unknown };
  sendCopyFail(message: string): void;
};
type RowDescription = {
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[];
};

/** pg calls it by these names. */
export class StatementQuery {
  /** pg puts its timeout around it. */
  callback: Done;
  readonly #session: StatementSession;
  readonly #run: StatementRun;
  #prepared: Prepared | undefined;
  readonly #rows: unknown[] = [];
  #tag = '';
  /** Of a value that cannot be read: what the server still sends is read all the same. */
  #error: unknown;

  constructor(session: StatementSession, run: StatementRun, done: Done) {
    this.#session = session;
    this.#run = run;
    this.#prepared = session.prepared.get(run.name);
    this.callback = done;
  }

  submit({ stream }: Wire): Error | null {
    const { name, text } = this.#run;
    const known = this.#prepared;
    if (known !== undefined && known.text !== text) return new Error(`two statements are named ${name}`);
    // Where it is not writable, pg reports the end of the connection.
    if (stream.writable)
      stream.write(encodeRun({ ...this.#run, text: known === undefined ? text : undefined }));
    return null;
  }

  handleRowDescription({ fields }: RowDescription): void {
    const columns = fields.map(({ name, dataTypeID }) => ({
      name,
      parse: this.#session.findParser(dataTypeID),
    }));
    this.#prepared = toPrepared(this.#run.text, columns);
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    // Nobody gets the rows before a COMMIT. An error of one, found once it is committed, would be taken for a rollback.
    if (this.#run.hasCommit) return;
    try {
      if (this.#prepared !== undefined) this.#rows.push(toRow(this.#prepared, fields));
    } catch (error) {
      this.#error ??= error;
    }
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#tag = text;
  }

  handleReadyForQuery(): void {
    const { name, text } = this.#run;
    // One without a result has no description.
    if (name !== '') this.#session.prepared.set(name, this.#prepared ?? toPrepared(text, []));
    if (this.#error !== undefined) return this.callback(this.#error);
    // `SELECT 1`, `INSERT 0 1`, `COMMIT`
    const [command = '', ...counts] = this.#tag.split(' ');
    const rowCount = Number(counts.at(-1) ?? 0);
    this.callback(undefined, { command, rowCount, rows: this.#rows });
  }

  handleError(error: unknown): void {
    this.callback(error);
  }

  // A named statement is not empty, does not stop at a number of rows, and does not copy.
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyData(): void {}
  handleCopyInResponse(connection: Wire): void {
    connection.sendCopyFail('a named statement copies nothing');
  }
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
