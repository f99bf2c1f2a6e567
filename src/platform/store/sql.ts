// The only file that uses kysely, which builds SQL instead of concatenating it.
import type { ColumnType } from 'kysely';

export { CompiledQuery, Kysely, PostgresDialect, sql, Transaction as KyselyTransaction } from 'kysely';
export type {
  ColumnType,
  ConnectionProvider,
  DatabaseConnection,
  Driver,
  Generated,
  KyselyProps,
  QueryResult,
  Selectable,
  TransactionSettings,
} from 'kysely';

/** A column that is set on insert, by the database or by us, and never updated. */
export type Fixed<T> = ColumnType<T, T | undefined, never>;

/** A JSON column, written as text. */
export type Json<T> = ColumnType<T, string, string>;

/** What most rows have. */
export type Entity = { readonly id: Fixed<string>; readonly created_at: Fixed<Date> };
