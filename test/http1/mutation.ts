// A deterministic mutator of HTTP messages: random bytes find typing errors, splices of meaningful tokens find
// disagreements. The same seed gives the same mutations for ever.

const tokens: readonly string[] = [
  '\r\n',
  '\n',
  '\r',
  '\r\n\r\n',
  '\0',
  ' ',
  '\t',
  ':',
  ';',
  ';a=b',
  ';a="b"',
  ',',
  '0',
  '_',
  '"',
  '#',
  '\xff',
  '0\r\n\r\n',
  '3\r\nabc\r\n',
  'HTTP/1.0',
  'HTTP/1.1',
  'chunked',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: gzip, chunked\r\n',
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Content-Length: +5\r\n',
  'Connection: close\r\n',
  'Connection: keep-alive, upgrade\r\n',
  'Upgrade: websocket\r\n',
  'Host: b.test\r\n',
  'X: y\r\n',
  ' folded\r\n',
  'GET /smuggled HTTP/1.1\r\nHost: b.test\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
];

/** A generator of numbers in [0, below): mulberry32. */
export type Random = (below: number) => number;

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below) | 0;
  };
}

/** One to three changes to `text` (one character a byte). */
export function mutate(text: string, random: Random): string {
  let mutated = text;
  for (let changes = 1 + random(3); changes > 0; changes--) mutated = change(mutated, random);
  return mutated;
}

function change(text: string, random: Random): string {
  const at = random(text.length + 1);
  const length = 1 + random(random(4) === 0 ? 24 : 3);
  const before = text.slice(0, at);
  const picked = text.slice(at, at + length);
  const after = text.slice(at + length);
  switch (random(8)) {
    case 0:
      return before + flipBit(picked, random) + after;
    case 1:
      return before + String.fromCharCode(random(256)) + picked + after;
    case 2:
      return before + after;
    case 3:
      return before + picked + picked + after;
    case 4:
      return text.slice(0, random(text.length + 1)) + picked + text.slice(random(text.length + 1));
    case 5:
      return before + swapCase(picked) + after;
    default:
      return before + (tokens[random(tokens.length)] ?? '') + (random(2) === 0 ? picked : '') + after;
  }
}

function flipBit(text: string, random: Random): string {
  return String.fromCharCode(text.charCodeAt(0) ^ (1 << random(8))) + text.slice(1);
}

function swapCase(text: string): string {
  return text === text.toLowerCase() ? text.toUpperCase() : text.toLowerCase();
}
