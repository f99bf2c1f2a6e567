// One step of the schema, forward only: once released it is never edited.

export type Migration = {
  /** 1, 2, 3, … without gaps. */
  readonly id: number;
  readonly name: string;
  /** Statements, run in one transaction. */
  readonly sql: string;
};
