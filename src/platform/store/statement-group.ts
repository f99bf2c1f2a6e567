// Statements that are sent together: BEGIN with the first statement of a transaction, and COMMIT with its last one. That saves two
// round trips, and no lock of the last statement waits for the network.

export type StatementConfig = {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** Of a named statement. */
  readonly name?: string | undefined;
};
export type SentStatement = {
  readonly config: StatementConfig;
  /** It is held back until the COMMIT of its transaction. */
  readonly isSentWithCommit: boolean;
};
export type Group = { readonly hasBegin: boolean; readonly hasCommit: boolean };
export type GroupResult = {
  readonly command: string;
  readonly rowCount?: number | null;
  readonly rows: readonly unknown[];
};

const ALONE: Group = { hasBegin: false, hasCommit: false };

/**
 * The statements of one connection, with the texts that kysely has for the ends of a transaction. `run` resolves with the
 * result of the last statement that it sent, COMMIT included.
 */
export function groupStatements(
  run: (config: StatementConfig, group: Group) => Promise<GroupResult>,
): (statement: SentStatement) => Promise<GroupResult> {
  let isOpen = false;
  let isBegun = true;
  let last: StatementConfig | undefined;
  const finish = async (config: StatementConfig): Promise<GroupResult> => {
    const [isSent, held] = [isBegun, last];
    [isOpen, isBegun, last] = [false, true, undefined];
    if (config.text === 'commit' && held !== undefined)
      return run(held, { hasBegin: !isSent, hasCommit: true });
    return isSent ? run(config, ALONE) : { command: config.text.toUpperCase(), rows: [] };
  };
  return async ({ config, isSentWithCommit }) => {
    if (config.text === 'begin') {
      [isOpen, isBegun] = [true, false];
      return { command: 'BEGIN', rows: [] };
    }
    if (config.text === 'commit' || config.text === 'rollback') return finish(config);
    if (last !== undefined) throw new Error('a statement follows the last one of its transaction');
    if (isOpen && isSentWithCommit) {
      last = config;
      return { command: 'SELECT', rows: [] };
    }
    const group = { hasBegin: !isBegun, hasCommit: false };
    isBegun = true;
    return run(config, group);
  };
}

export type Done = (error: unknown, result?: GroupResult) => void;

/** What pg's classes have beyond their types. */
type Wire = {
  parse(message: { readonly text: string }): void;
  bind(message: object): void;
  execute(message: object): void;
  sync(): void;
};
type Query = { submit(connection: object): void };
export type QueryClass = new (
  config: StatementConfig & { readonly queryMode: 'extended' },
  done: (error: Error | undefined, results: unknown) => void,
) => Query & { prepare(connection: Wire): void; _getRows(connection: Wire): void };
export type GroupedQueryClass = new (config: StatementConfig, group: Group, done: Done) => Query;

/**
 * pg's query in such a group, for statements that are built for each run. Until the Sync at its end the server skips whatever
 * follows an error (PostgreSQL manual, "Extended Query"): no statement runs without its BEGIN, and a failed one is not committed.
 */
export function createGroupedQuery(base: QueryClass): GroupedQueryClass {
  return class GroupedQuery extends base {
    readonly #group: Group;

    constructor(config: StatementConfig, group: Group, done: Done) {
      // Each statement has its own result.
      super({ ...config, queryMode: 'extended' }, (error, results) =>
        error ? done(error) : done(undefined, (results as readonly GroupResult[]).at(-1)),
      );
      this.#group = group;
    }

    override prepare(connection: Wire): void {
      if (this.#group.hasBegin) send(connection, 'begin');
      super.prepare(connection);
    }

    override _getRows(connection: Wire): void {
      connection.execute({});
      if (this.#group.hasCommit) send(connection, 'commit');
      connection.sync();
    }
  };
}

function send(connection: Wire, text: string): void {
  connection.parse({ text });
  connection.bind({});
  connection.execute({});
}
