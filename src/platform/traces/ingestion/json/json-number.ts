// The grammar of numbers in JSON (RFC 8259 §6), byte by byte. Its states begin behind those of the scanner. Pure.

const [MINUS, ZERO, INTEGER, POINT, FRACTION, EXPONENT, SIGN, DIGITS] = [10, 11, 12, 13, 14, 15, 16, 17];

export function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** `byte` is a digit or a minus. */
export function firstOfNumber(byte: number): number {
  if (byte === 0x2d) return MINUS;
  return byte === 0x30 ? ZERO : INTEGER;
}

/** Whether a number may end there. */
export function isNumberDone(state: number): boolean {
  return state === ZERO || state === INTEGER || state === FRACTION || state === DIGITS;
}

/** Whether a digit changes nothing. */
export function mayRepeatDigits(state: number): boolean {
  return state === INTEGER || state === FRACTION || state === DIGITS;
}

/** Undefined where the number does not go on with this byte. */
export function nextOfNumber(state: number, byte: number): number | undefined {
  const isExponent = (byte | 0x20) === 0x65;
  if (isDigit(byte)) {
    if (state === MINUS) return byte === 0x30 ? ZERO : INTEGER;
    if (state === ZERO) return undefined;
    if (state === INTEGER) return INTEGER;
    return state === POINT || state === FRACTION ? FRACTION : DIGITS;
  }
  if (byte === 0x2e) return state === ZERO || state === INTEGER ? POINT : undefined;
  if (isExponent) return state === ZERO || state === INTEGER || state === FRACTION ? EXPONENT : undefined;
  if (byte === 0x2b || byte === 0x2d) return state === EXPONENT ? SIGN : undefined;
  return undefined;
}
