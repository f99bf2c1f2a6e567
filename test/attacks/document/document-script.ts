// The script of a row of the stage `document`: a document of a tenant or of a caller of the admin API, and the expected
// issues. An invalid document is tried both ways, as the file of `check` and as a PUT, while a rule is in force.
import type { AttackRow } from '../row.ts';

export type DocumentScript = {
  /** The JSON text; a pair is a piece and its number of repetitions. */
  readonly text: readonly (string | readonly [piece: string, count: number])[];
  /** The resource of the PUT; only a proxy_config also has a file. */
  readonly route?: 'workspace_secrets' | 'sandboxes';
  /** Requests while an accepted document is in force: the host of the authority, and a path. */
  readonly ask?: readonly (readonly [host: string, path: string])[];
};

export type Expectation = {
  /** `PATH TYPE` of every issue; only `json_invalid` if the text is not JSON. */
  readonly issues?: readonly string[];
  /** The issues of the PUT if they differ from those of the file: the PUT resolves secrets and values, the file does not. */
  readonly atPut?: readonly string[];
  /** `PATH TYPE` of every warning of an accepted document. */
  readonly warnings?: readonly string[];
  /** The injected fields of the requests in `ask`, as `Name: value`, in order. */
  readonly arrived?: readonly (readonly string[])[];
};

export type DocumentRow = AttackRow<DocumentScript, Expectation>;

/** A row with the same issues both ways. */
export function refusedRow(
  id: DocumentRow['id'],
  document: unknown,
  issues: readonly string[],
  atPut?: readonly string[],
): DocumentRow {
  return { id, script: { text: [toText(document)] }, expect: { issues, ...(atPut && { atPut }) } };
}

/** A row with an accepted document, and its effect. */
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
