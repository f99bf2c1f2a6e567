// Statements that run so often that building them counts: built once for each process, prepared once on each connection.
//
//   const findOwner = defineStatement('find-owner', (db, given: { readonly id: string }) =>
//     db.selectFrom('users').select('email').where('id', '=', given.id).compile());
//   const [owner] = await findOwner(db, { id });   // db: a pool or a transaction
import type { CompiledQuery, Kysely } from './sql.ts';
import type { Tables } from './tables.ts';

type Database = Kysely<Tables>;

/** Runs the statement with the given values. */
export type Statement<Given, Row> = (db: Database, given: Given) => Promise<Row[]>;

/**
 * `name` is unique, for the list of prepared statements of the server. `build` sees a placeholder in the place of each
 * value: it must pass all of them on as parameters, and neither read nor compare one.
 */
export function defineStatement<Given extends object, Row>(
  name: string,
  build: (db: Database, given: Given) => CompiledQuery<Row>,
  traits: Traits = {},
): Statement<Given, Row> {
  let known: CompiledQuery<Row> | undefined;
  return async (db, given) => {
    if (known === undefined) {
      known = build(db, placeholders as Given);
      statements.set(known.sql, { name, ...traits });
    }
    const parameters = known.parameters.map((value) =>
      value instanceof Placeholder ? given[value.name as keyof Given] : value,
    );
    const { rows } = await db.executeQuery<Row>({ ...known, parameters });
    return rows;
  };
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

/** Every member is its own placeholder. */
const placeholders: unknown = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });
