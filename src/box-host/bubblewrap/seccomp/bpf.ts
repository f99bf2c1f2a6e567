// Classic BPF as seccomp runs it: instructions over the number, the architecture and the arguments of a system call.
// Pure; encodes little-endian, like both supported architectures.

export type Instruction = {
  readonly code: number;
  /** Instructions to skip when the comparison holds, and when it does not. */
  readonly jumpTrue: number;
  readonly jumpFalse: number;
  readonly value: number;
};

/** Offsets in `struct seccomp_data`. */
export const NUMBER_OFFSET = 0;
export const ARCHITECTURE_OFFSET = 4;
const ARGUMENTS_OFFSET = 16;

export const LOAD = 0x20;
export const JUMP_EQUAL = 0x15;
export const JUMP_GREATER = 0x25;
export const JUMP_AT_LEAST = 0x35;
export const AND = 0x54;
export const RETURN = 0x06;

type Comparison = typeof JUMP_EQUAL | typeof JUMP_GREATER | typeof JUMP_AT_LEAST;

const INSTRUCTION_BYTES = 8;
/** The kernel's limit, BPF_MAXINSNS. */
const MAX_INSTRUCTIONS = 4096;
/** A jump offset is one byte. */
const MAX_JUMP = 255;

export function load(offset: number): Instruction {
  return { code: LOAD, jumpTrue: 0, jumpFalse: 0, value: offset };
}

/**
 * The lower half of an argument. The calls that are checked take 32 bits and ignore the upper half: a comparison of all 64
 * bits could be passed by setting a bit that the kernel ignores.
 */
export function loadArgument(index: number): Instruction {
  return load(ARGUMENTS_OFFSET + 8 * index);
}

/** Of an argument that is a pointer. */
export function loadUpperHalf(index: number): Instruction {
  return load(ARGUMENTS_OFFSET + 8 * index + 4);
}

export function and(mask: number): Instruction {
  return { code: AND, jumpTrue: 0, jumpFalse: 0, value: mask };
}

/** Runs `block` when the loaded value compares so, otherwise continues after it. */
export function when(
  comparison: Comparison,
  value: number,
  block: readonly Instruction[],
): readonly Instruction[] {
  return [{ code: comparison, jumpTrue: 0, jumpFalse: skipped(block), value }, ...block];
}

/** Runs `block` unless the loaded value compares so; then it continues after it. */
export function unless(
  comparison: Comparison,
  value: number,
  block: readonly Instruction[],
): readonly Instruction[] {
  return [{ code: comparison, jumpTrue: skipped(block), jumpFalse: 0, value }, ...block];
}

function skipped(block: readonly Instruction[]): number {
  if (block.length > MAX_JUMP)
    throw new RangeError(`a block of ${block.length} instructions cannot be skipped`);
  return block.length;
}

/** Ends the program. */
export function result(action: number): Instruction {
  return { code: RETURN, jumpTrue: 0, jumpFalse: 0, value: action };
}

/** An array of `struct sock_filter`. */
export function encodeProgram(program: readonly Instruction[]): Uint8Array {
  if (program.length > MAX_INSTRUCTIONS)
    throw new RangeError(`the kernel refuses ${program.length} instructions`);
  const bytes = Buffer.alloc(program.length * INSTRUCTION_BYTES);
  for (const [index, { code, jumpTrue, jumpFalse, value }] of program.entries()) {
    const at = index * INSTRUCTION_BYTES;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(jumpTrue, at + 2);
    bytes.writeUInt8(jumpFalse, at + 3);
    bytes.writeUInt32LE(value >>> 0, at + 4);
  }
  return bytes;
}
