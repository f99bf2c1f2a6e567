// The system calls that a box may use on one architecture, by number. What is not listed is denied.

export type SyscallTable = {
  /** AUDIT_ARCH of the kernel. */
  readonly architecture: number;
  /** Numbers from here on belong to another calling convention (x32); undefined: there is none. */
  readonly foreignFrom: number | undefined;
  readonly numbers: ReadonlyMap<string, number>;
};

/** `runs`: the first number of consecutive calls, with their names. */
export function readRuns(runs: Readonly<Record<number, string>>): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  for (const [first, names] of Object.entries(runs))
    for (const [index, name] of names.split(' ').entries()) numbers.set(name, Number(first) + index);
  return numbers;
}
