// One step of the schema, forward only: once released it is never edited.

export type Migration = {
  /** 1, 2, 3, … without gaps. */
  readonly id: number;
  readonly name: string;
  /** Statements, run in one transaction by the owner. They grant `sallyport_app` what the platform does at run time. */
  readonly sql: string;
};
