// What a row of the stage `document` says: a document that a tenant or a caller of the admin API writes, and what is said
// of it. A document at fault is tried at both doors, the file of `check` and a PUT, while a rule is in force.
import type { AttackRow } from '../row.ts';

export type DocumentScript = {
  /** JSON as it is written; a pair is a piece and how often it comes. */
  readonly text: readonly (string | readonly [piece: string, count: number])[];
  /** Where it is sent; only a proxy_config has a file, too. */
  readonly route?: 'workspace_secrets' | 'sandboxes';
  /** Requests made while the document is in force, where it is taken: an authority's host, and a path. */
  readonly ask?: readonly (readonly [host: string, path: string])[];
};

export type Expectation = {
  /** `PLACE TYPE` of every issue, the place within the document; `json_invalid` alone where it is no JSON. */
  readonly issues?: readonly string[];
  /** The same, where PUT says another thing than the file: it has secrets and values at hand, the file has none. */
  readonly atPut?: readonly string[];
  /** `PLACE TYPE` of every warning of a document that is taken. */
  readonly warnings?: readonly string[];
  /** What arrived of `ask`: the fields of ours, as `Name: value`, in order. */
  readonly arrived?: readonly (readonly string[])[];
};

export type DocumentRow = AttackRow<DocumentScript, Expectation>;

/** A row that is refused at both doors alike. */
export function refusedRow(
  id: DocumentRow['id'],
  document: unknown,
  issues: readonly string[],
  atPut?: readonly string[],
): DocumentRow {
  return { id, script: { text: [toText(document)] }, expect: { issues, ...(atPut && { atPut }) } };
}

/** A row of a document that is taken, and what it does. */
export function takenRow(
  id: DocumentRow['id'],
  document: unknown,
  done: {
    readonly ask?: DocumentScript['ask'];
    readonly arrived?: Expectation['arrived'];
    readonly warnings?: readonly string[];
  } = {},
): DocumentRow {
  const { ask, arrived, warnings } = done;
  const script = { text: [toText(document)], ...(ask && { ask }) };
  return { id, script, expect: { ...(arrived && { arrived }), ...(warnings && { warnings }) } };
}

export function toText(document: unknown): string {
  return typeof document === 'string' ? document : JSON.stringify(document);
}
