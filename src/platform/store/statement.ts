// Statements that run so often that building them counts: built once for each process, prepared once on each connection.
//
//   const findOwner = defineStatement('find-owner', (db, given: { readonly id: string }) =>
//     db.selectFrom('users').select('email').where('id', '=', given.id).compile());
//   const [owner] = await findOwner(db, { id });   // db: a pool or a transaction
import type { StatementValue } from './pool/run-message.ts';
import type { CompiledQuery, Kysely } from './sql.ts';
import type { Tables } from './tables.ts';

type Database = Kysely<Tables>;
type Reader = Pick<Database, 'selectFrom'>;

/** Runs the statement with the given values. */
export type Statement<Given, Row> = (db: Database, given: Given) => Promise<Row[]>;

/**
 * `name` is unique, for the list of prepared statements of the server. `build` sees a placeholder in the place of each
 * value: it must pass all of them on as parameters, and neither read nor compare one.
 */
export function defineStatement<Given extends Readonly<Record<string, StatementValue>>, Row>(
  name: string,
  build: (db: Database, given: Given) => CompiledQuery<Row>,
  traits: Traits = {},
): Statement<Given, Row> {
  let known: CompiledQuery<Row> | undefined;
  return async (db, given) => {
    if (known === undefined) {
      const built = build(db, placeholders as Given);
      if (!built.parameters.every(isPlain))
        throw new Error(`the statement ${name} has a value other than text, a number, a boolean or bytes`);
      statements.set(built.sql, { name, ...traits });
      known = built;
    }
    const parameters = known.parameters.map((value) =>
      value instanceof Placeholder ? given[value.name] : value,
    );
    const query = { ...known, parameters };
    // Not by `executeQuery` of `db`, which asks its plugins: there are none.
    const { rows } = await db
      .getExecutor()
      .provideConnection((connection) => connection.executeQuery<Row>(query));
    return rows;
  };
}

/** The same of a statement that reads, for callers who may do nothing else. */
export function defineRead<Given extends Readonly<Record<string, StatementValue>>, Row>(
  name: string,
  build: (db: Reader, given: Given) => CompiledQuery<Row>,
): (db: Reader, given: Given) => Promise<Row[]> {
  const run = defineStatement(name, build);
  // Every reader is a whole database, of which its type hides the rest.
  return (db, given) => run(db as Database, given);
}

export type Traits = {
  /** It is the last statement of its transaction and is sent with the COMMIT, which rejects where it fails. Its rows are lost. */
  readonly isSentWithCommit?: boolean;
};

/** The statement with this text; undefined for a text that is built for each query. */
export function findStatement(text: string): (Traits & { readonly name: string }) | undefined {
  return statements.get(text);
}

const statements = new Map<string, Traits & { readonly name: string }>();

class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** Or a placeholder, whose value its type restricts. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object') return ['string', 'number', 'boolean'].includes(typeof value);
  return value === null || value instanceof Placeholder || value instanceof Uint8Array;
}

/** Every member is its own placeholder. */
const placeholders: unknown = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });
