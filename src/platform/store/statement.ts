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
): Statement<Given, Row> {
  let known: CompiledQuery<Row> | undefined;
  return async (db, given) => {
    if (known === undefined) {
      known = build(db, placeholders as Given);
      names.set(known.sql, name);
    }
    const parameters = known.parameters.map((value) =>
      value instanceof Placeholder ? given[value.name as keyof Given] : value,
    );
    const { rows } = await db.executeQuery<Row>({ ...known, parameters });
    return rows;
  };
}

/** The name of a statement by its text; undefined for a text that is built for each query. */
export function nameOf(text: string): string | undefined {
  return names.get(text);
}

const names = new Map<string, string>();

class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** Every member is its own placeholder. */
const placeholders: unknown = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });
