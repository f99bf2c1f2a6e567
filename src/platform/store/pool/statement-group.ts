// Statements that are sent together: BEGIN with the first statement of a transaction, and COMMIT with its last one. That saves two
// round trips, and no lock of the last statement waits for the network.

export type StatementConfig = {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** Of a named statement. */
  readonly name?: string | undefined;
};
export type Group = { readonly hasBegin: boolean; readonly hasCommit: boolean };
export type GroupResult = {
  readonly command: string;
  readonly rowCount?: number | null;
  readonly rows: readonly unknown[];
};

export type Done = (error: unknown, result?: GroupResult) => void;
/** A statement, and who waits for its result. */
export type Sent = { readonly config: StatementConfig; readonly done: Done };

/**
 * The statements of one connection, with the texts that kysely has for the ends of a transaction. `run` sends statements together;
 * the last one is done with the result of the COMMIT where there is one.
 */
export class StatementGroups {
  readonly #run: (statements: readonly Sent[], group: Group) => void;
  #isOpen = false;
  #isBegun = true;
  /** They are sent with the statement that follows them. */
  #ahead: Sent[] = [];
  /** It is sent with the COMMIT. */
  #last: StatementConfig | undefined;

  constructor(run: (statements: readonly Sent[], group: Group) => void) {
    this.#run = run;
  }

  send(config: StatementConfig, isSentWithCommit: boolean): Promise<GroupResult> {
    const { text } = config;
    if (text === 'begin') {
      [this.#isOpen, this.#isBegun] = [true, false];
      return BEGUN;
    }
    if (text === 'commit' || text === 'rollback') return this.#finish(config);
    if (this.#last !== undefined) return refuseAfterLast();
    if (this.#isOpen && isSentWithCommit) {
      this.#last = config;
      return KEPT;
    }
    return this.#sendNow(config, false);
  }

  /** Sends the statement together with the next one of the transaction, and resolves then. */
  hold(config: StatementConfig): Promise<GroupResult> {
    if (this.#last !== undefined) return refuseAfterLast();
    if (!this.#isOpen) return this.#sendNow(config, false);
    const { promise, done } = createDone();
    this.#ahead.push({ config, done });
    return promise;
  }

  /** Sends what is held. */
  sendHeld(): void {
    if (this.#ahead.length > 0) this.#runWithHeld([], false);
  }

  #finish(config: StatementConfig): Promise<GroupResult> {
    const last = this.#last;
    [this.#isOpen, this.#last] = [false, undefined];
    if (config.text === 'commit' && last !== undefined) return this.#sendNow(last, true);
    if (config.text === 'rollback') this.#dropHeld();
    if (this.#isBegun || this.#ahead.length > 0) return this.#sendNow(config, false);
    this.#isBegun = true;
    return Promise.resolve({ command: config.text.toUpperCase(), rows: [] });
  }

  #dropHeld(): void {
    const dropped = this.#ahead;
    this.#ahead = [];
    for (const { done } of dropped) done(new Error('rolled back before the statement was sent'));
  }

  #sendNow(config: StatementConfig, hasCommit: boolean): Promise<GroupResult> {
    const { promise, done } = createDone();
    this.#runWithHeld([{ config, done }], hasCommit);
    return promise;
  }

  #runWithHeld(statements: readonly Sent[], hasCommit: boolean): void {
    const group = { hasBegin: !this.#isBegun, hasCommit };
    this.#isBegun = true;
    const ahead = this.#ahead;
    if (ahead.length > 0) this.#ahead = [];
    this.#run(ahead.length > 0 ? [...ahead, ...statements] : statements, group);
  }
}

const BEGUN: Promise<GroupResult> = Promise.resolve({ command: 'BEGIN', rows: [] });
/** Of a statement that waits for the COMMIT. */
const KEPT: Promise<GroupResult> = Promise.resolve({ command: 'SELECT', rows: [] });

function refuseAfterLast(): Promise<never> {
  return Promise.reject(new Error('a statement follows the last one of its transaction'));
}

function createDone(): { readonly promise: Promise<GroupResult>; readonly done: Done } {
  const { promise, resolve, reject } = Promise.withResolvers<GroupResult>();
  const done: Done = (error, result) => (result === undefined ? reject(error) : resolve(result));
  return { promise, done };
}

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
