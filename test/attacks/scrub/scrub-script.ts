// The script of a row of stage `scrub`: extra request fields, how a host echoes the credential in a body, and what the
// client must read of a scrubbed body. Bytes are latin1 strings. Independent of the proxy.
import type { AttackRow } from '../row.ts';

export type Field = readonly [name: string, value: string];

export type ScrubScript = {
  readonly version: 'h1' | 'h2';
  /** GET by default. */
  readonly method?: string;
  /** Additional request fields. */
  readonly asks?: readonly Field[];
  /** 200 by default. */
  readonly status?: number;
  readonly fields?: readonly Field[];
  /** Over HTTP/1.1: a length, chunks of one piece each, or a body that ends with the connection. `chunks` by default. */
  readonly framing?: 'length' | 'chunks' | 'close';
  /** Each is sent in a separate write. */
  readonly pieces: readonly string[];
  /** The host closes the connection after the last piece, before the end of the body. */
  readonly isCut?: boolean;
  /** Trailer fields. */
  readonly trailers?: readonly Field[];
};

export type ScrubExpectation = {
  /** The body that the client read; of a truncated response, the part before the cut. */
  readonly body?: string;
  /** The number of masked places in the record; none by default. */
  readonly places?: number;
  readonly status?: number;
  /** The cause in the record of a refusal. */
  readonly refused?: 'encoded' | 'partial';
  readonly trailers?: readonly Field[];
  /** A form that is not searched for (SECURITY.md, Limits). */
  readonly isLeakDocumented?: boolean;
};

export type ScrubRow = AttackRow<ScrubScript, ScrubExpectation>;

type Shared = Omit<ScrubScript, 'version'>;

/** The same row for both versions of HTTP. */
export function overBothVersions(
  id: `${string} ${string}`,
  script: Shared,
  expect: ScrubExpectation,
): ScrubRow[] {
  return (['h1', 'h2'] as const).map((version) => ({
    id: `${id}-${version}`,
    script: { version, ...script },
    expect,
  }));
}
