// One attack: what is sent, at which doors it is tried, and what must be seen. A row is plain data, so that two rows can
// be told apart by their bytes and every stage that understands its script can play it. It knows no proxy.

export type AttackRow<Script, Expectation> = {
  /** `CLASS kebab-name`: `F-04 plus-sign`. The class is listed in `attack-classes.ts`. */
  readonly id: `${string} ${string}`;
  /** What is sent, by whom, in which order. Only JSON; bytes are strings of latin1. */
  readonly script: Script;
  /** What must be seen afterwards, at the client, at every origin and in the records. */
  readonly expect: Expectation;
};

export function classOf({ id }: { readonly id: string }): string {
  return id.slice(0, id.indexOf(' '));
}

/** What makes a row another one than its neighbour: the stage and the bytes, not the name and not the expectation. */
export function fingerprint(stage: string, row: { readonly script: unknown }): string {
  return JSON.stringify([stage, row.script]);
}
