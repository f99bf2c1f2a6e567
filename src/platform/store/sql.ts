// The door to kysely: SQL that is built and never pasted together. It knows no table.
import type { ColumnType } from 'kysely';

export { Kysely, PostgresDialect, sql } from 'kysely';
export type { Generated, Selectable, Transaction as KyselyTransaction, PostgresPool } from 'kysely';

/** A column that is set by the database, or once by us; never changed. */
export type Fixed<T> = ColumnType<T, T | undefined, never>;

/** A column of JSON, written as text. */
export type Json<T> = ColumnType<T, string, string>;
