// One migration of the schema. A released migration is never edited: every database stores the hash of its SQL.

export type Migration = {
  /** 1, 2, 3, … without gaps. */
  readonly id: number;
  readonly name: string;
  /** Run by the owner in one transaction. Must grant `sallyport_app` what the platform needs at run time. */
  readonly sql: string;
};
