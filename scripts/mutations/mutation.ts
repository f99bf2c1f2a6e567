// A named way to break an invariant: one exact replacement in one source file, which the invariant's own tests must see.

export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I8' | 'I10' | 'I11' | 'I12';
export type Mutation = {
  readonly invariant: Invariant;
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly text: string;
  readonly replacement: string;
  /** What the broken proxy does. */
  readonly breaks: string;
};
