// A named way to break an invariant: one exact replacement in one source file, which the invariant's own tests must detect.

export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8' | 'I9' | 'I10' | 'I11' | 'I12';
/** HTTP/1.1 or HTTP/2 of the proxy, the gateway, or services of boxes on it: each invariant has separate tests for each version of HTTP. */
export type Version = 'h1' | 'h2' | 'gateway' | 'services';
export const bothVersions: readonly Version[] = ['h1', 'h2'];
export const allVersions: readonly Version[] = [...bothVersions, 'gateway', 'services'];
export type Mutation = {
  readonly invariant: Invariant;
  /** The versions whose tests must each detect it; only HTTP/1.1 if absent. */
  readonly versions?: readonly Version[];
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly text: string;
  readonly replacement: string;
  /** What the broken proxy does. */
  readonly breaks: string;
};
