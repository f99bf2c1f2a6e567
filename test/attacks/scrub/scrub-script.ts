// What a row of stage `scrub` says: what a client asks for beside its request, how a host echoes the credential in a body,
// and what the client must have read of it where bodies are searched. Bytes are strings of latin1. It knows no proxy.
import type { AttackRow } from '../row.ts';

export type Field = readonly [name: string, value: string];

export type ScrubScript = {
  readonly entry: 'h1' | 'h2';
  /** GET if left out. */
  readonly method?: string;
  /** What the client sends beside what every request has. */
  readonly asks?: readonly Field[];
  /** 200 if left out. */
  readonly status?: number;
  readonly fields?: readonly Field[];
  /** Over HTTP/1.1: a length, chunks of one piece each, or all up to the end of the connection. `chunks` if left out. */
  readonly framing?: 'length' | 'chunks' | 'close';
  /** Each leaves by itself. */
  readonly pieces: readonly string[];
  /** The host breaks off behind the last piece. */
  readonly isCut?: boolean;
  /** Fields behind the body. */
  readonly trailers?: readonly Field[];
};

export type ScrubExpectation = {
  /** What the client read as the body; of an answer that is cut, what came before the cut. */
  readonly body?: string;
  /** Places that were masked, in the record; none if left out. */
  readonly places?: number;
  readonly status?: number;
  /** Of a refusal: what the record says beside its code. */
  readonly refused?: 'encoded' | 'partial';
  readonly trailers?: readonly Field[];
  /** Another form than those that are searched for (SECURITY.md, Limits). */
  readonly isLeakDocumented?: boolean;
};

export type ScrubRow = AttackRow<ScrubScript, ScrubExpectation>;

type Shared = Omit<ScrubScript, 'entry'>;

/** The same by both versions of HTTP. */
export function overBothVersions(
  id: `${string} ${string}`,
  script: Shared,
  expect: ScrubExpectation,
): ScrubRow[] {
  return (['h1', 'h2'] as const).map((entry) => ({
    id: `${id}-${entry}`,
    script: { entry, ...script },
    expect,
  }));
}
