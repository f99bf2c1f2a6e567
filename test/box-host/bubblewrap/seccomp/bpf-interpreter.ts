// Runs a seccomp filter as the kernel does: the oracle of the filter's tests, written from the kernel's documentation.

export type SystemCall = {
  readonly architecture: number;
  readonly number: number;
  readonly args?: readonly bigint[];
};

/** The value that the program returns. Throws for what the kernel would refuse to load. */
export function runFilter(program: Uint8Array, { architecture, number, args = [] }: SystemCall): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number >>> 0, 0);
  data.writeUInt32LE(architecture >>> 0, 4);
  for (const [index, arg] of args.entries()) data.writeBigUInt64LE(BigInt.asUintN(64, arg), 16 + 8 * index);
  const code = Buffer.from(program);
  let accumulator = 0;
  for (let at = 0; at < code.length; at += 8) {
    const value = code.readUInt32LE(at + 4);
    const jump = (holds: boolean): void => {
      at += 8 * code.readUInt8(at + (holds ? 2 : 3));
    };
    switch (code.readUInt16LE(at)) {
      case 0x20:
        if (value % 4 !== 0 || value > 60) throw new Error(`a load at ${value}`);
        accumulator = data.readUInt32LE(value);
        break;
      case 0x54:
        accumulator = (accumulator & value) >>> 0;
        break;
      case 0x15:
        jump(accumulator === value);
        break;
      case 0x25:
        jump(accumulator > value);
        break;
      case 0x35:
        jump(accumulator >= value);
        break;
      case 0x06:
        return value;
      default:
        throw new Error(`the instruction ${code.readUInt16LE(at)}`);
    }
  }
  throw new Error('the program has no end');
}
