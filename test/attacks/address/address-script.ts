// The script of a row of the stage `address`: who requests which destination, what each lookup returns, and what is expected
// under each operator setting. A dial is recorded and refused, except to one address.
import type { AttackRow } from '../row.ts';

/** The operator settings; their documents are in the driver. */
export type Profile =
  | 'default'
  | 'exposed'
  | 'never'
  | 'loopback'
  | 'listed'
  | 'everything'
  | 'strict-callbacks';

/** The addresses of one lookup, an error, or no response. */
export type Response = readonly string[] | 'SERVFAIL' | 'silence';

export type AddressScript = {
  readonly by: 'tunnel' | 'https' | 'http';
  /** Authorities that the same sandbox requests one after another. */
  readonly to: readonly string[];
  /** The tenant's proxy_config. */
  readonly document?: unknown;
  /** For each name the results of its lookups; the last one is repeated. */
  readonly responses?: Readonly<Record<string, readonly Response[]>>;
  /** The milliseconds that pass on the clock between two attempts. */
  readonly pauseMs?: number;
  /** Keys and values of the operator's config that override the profile. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly under: readonly Profile[];
};

/**
 * The events under each profile, in order: `lookup NAME`, `dial ADDRESS:PORT`, the code and cause of a refusal if nothing
 * was dialled, `422 PATH TYPE` for a rejected document.
 */
export type Expectation = {
  readonly seen: Readonly<Partial<Record<Profile, readonly string[]>>>;
  /** The client reads the same bytes at every attempt. */
  readonly isAlike?: true;
};

export type AddressRow = AttackRow<AddressScript, Expectation>;

/** A row whose profiles are the keys of its expectation. */
export function addressRow(
  id: AddressRow['id'],
  script: Omit<AddressScript, 'under'>,
  seen: Expectation['seen'],
  more: Omit<Expectation, 'seen'> = {},
): AddressRow {
  const under = Object.keys(seen) as Profile[];
  return { id, script: { ...script, under }, expect: { seen, ...more } };
}
