// One attack: what is sent, through which entry points, and what must be observed. A row is plain data, so that rows can be
// compared by their bytes and every stage that understands its script can play it. Independent of any proxy.

export type AttackRow<Script, Expectation> = {
  /** `CLASS kebab-name`: `F-04 plus-sign`. The class is listed in `attack-classes.ts`. */
  readonly id: `${string} ${string}`;
  /** What each side sends, in order. Only JSON; bytes are latin1 strings. */
  readonly script: Script;
  /** What must be observed afterwards: at the client, at every origin and in the records. */
  readonly expect: Expectation;
};

export function classOf({ id }: { readonly id: string }): string {
  return id.slice(0, id.indexOf(' '));
}

/** Identifies a row by its stage and its bytes, without its name and its expectation. */
export function fingerprint(stage: string, row: { readonly script: unknown }): string {
  return JSON.stringify([stage, row.script]);
}
