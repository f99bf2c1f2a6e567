// What a row of the stage `address` says: who asks for which destination, what a lookup answers each time, and what is
// seen under each setting of the operator. No socket is opened: a dial is written down and refused.
import type { AttackRow } from '../row.ts';

/** What an operator may have set; the documents are in the driver. */
export type Profile =
  | 'default'
  | 'exposed'
  | 'never'
  | 'loopback'
  | 'listed'
  | 'everything'
  | 'strict-callbacks';

/** One lookup's addresses, an error, or no answer at all. */
export type Response = readonly string[] | 'SERVFAIL' | 'silence';

export type AddressScript = {
  readonly by: 'tunnel' | 'https' | 'http';
  /** Authorities, tried one after another by the same sandbox. */
  readonly to: readonly string[];
  /** The tenant's proxy_config. */
  readonly document?: unknown;
  /** By name, one for each lookup; the last one again and again. */
  readonly responses?: Readonly<Record<string, readonly Response[]>>;
  /** What passes on the clock between two attempts. */
  readonly pauseMs?: number;
  /** Keys and values of the operator's config, over the profile's. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly under: readonly Profile[];
};

/**
 * What happened under each profile, in order: `lookup NAME`, `dial ADDRESS:PORT`, a refusal's code and cause where
 * nothing was dialled, `422 PLACE TYPE` for a document that is not taken.
 */
export type Expectation = {
  readonly seen: Readonly<Partial<Record<Profile, readonly string[]>>>;
  /** What the client reads is the same, byte for byte, at every attempt. */
  readonly isAlike?: true;
};

export type AddressRow = AttackRow<AddressScript, Expectation>;

/** A row whose profiles are those that something is expected of. */
export function addressRow(
  id: AddressRow['id'],
  script: Omit<AddressScript, 'under'>,
  seen: Expectation['seen'],
  more: Omit<Expectation, 'seen'> = {},
): AddressRow {
  const under = Object.keys(seen) as Profile[];
  return { id, script: { ...script, under }, expect: { seen, ...more } };
}
