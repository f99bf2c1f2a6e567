// The cost of masking secrets in one response head, in microseconds: an ordinary head, one with escapes, many secrets, and
// heads that resemble secrets as often as possible. `node bench/mask.ts`.
import { isHeadError } from '../src/http1/head-error.ts';
import { type ResponseHead, parseResponseHead } from '../src/http1/head-parser.ts';
import { compileMask, maskResponseHead } from '../src/proxy/mask/mask.ts';

const ROUNDS = 9;
const HEAD_BYTES = 32_768;
const original = Buffer.alloc(HEAD_BYTES);

const token = (i: number): string => `ghp_${(i * 7_919 + 1_000_003).toString(36).repeat(6).slice(0, 36)}`;
const two = [token(1), `Bearer ${token(1)}`];
const thousand = Array.from({ length: 500 }, (_, i) => [token(i), `Bearer ${token(i)}`]).flat();
// The limit of one rule; the secrets differ only at the end, in the middle or at the beginning.
const alike = (value: (tag: string) => string): string[] =>
  Array.from({ length: 64 }, (_, i) => value(`x${i.toString(36).padStart(2, '0')}`));
const ends = alike((tag) => `${'a'.repeat(4_000)}${tag}`);
const middles = alike((tag) => `${'a'.repeat(2_000)}${tag}${'a'.repeat(2_000)}`);
const starts = alike((tag) => `${tag}${'a'.repeat(4_000)}`);
const lengths = Array.from({ length: 64 }, (_, i) => 'a'.repeat(4_000 + i));
const long = HEAD_BYTES - 64;

const plain = [
  'Date: Sat, 01 Aug 2026 00:00:00 GMT',
  'Content-Type: application/json; charset=utf-8',
  'Content-Length: 1234',
  'Connection: keep-alive',
  'Cache-Control: no-cache, no-store, max-age=0, must-revalidate',
  'Strict-Transport-Security: max-age=31536000; includeSubDomains; preload',
  'X-Request-Id: 7f3c1b9e-54a2-4c60-9f3e-2b8d1a7c9e55',
  'X-RateLimit-Remaining: 4999',
  'Server: example',
  'Vary: Accept, Authorization, Cookie, X-Requested-With, Accept-Encoding',
  'X-Content-Type-Options: nosniff',
];

report('500 bytes, 2 secrets', two, plain);
report('500 bytes with escapes, 2 secrets', two, [...plain.slice(1), 'Location: /a%20b?c=%2Fd%2Fe']);
report('500 bytes, 1,000 secrets', thousand, plain);
report('32 KiB, 2 secrets', two, [`X: ${'lorem ipsum, dolor sit amet; '.repeat(1_120)}`]);
report('32 KiB, 1,000 secrets', thousand, [`X: ${'lorem ipsum, dolor sit amet; '.repeat(1_120)}`]);
for (const [name, secrets] of Object.entries({ ends, middles, starts, lengths })) {
  report(`32 KiB that resemble secrets, ${name} differ`, secrets, [`X: ${'a'.repeat(long)}`]);
  report(`32 KiB after an escape, ${name} differ`, secrets, [`X: %${'a'.repeat(long - 1)}`]);
  report(`32 KiB of escapes, ${name} differ`, secrets, [`X: ${'%61'.repeat(long / 3)}`]);
}
report('32 KiB of beginnings, 1,000 secrets', thousand, [`X: ${'Bearer ghp_'.repeat(long / 11)}`]);
compiling('2 secrets', two);
compiling('1,000 secrets', thousand);
compiling('64 secrets of 4,000 bytes', ends);

function report(what: string, secrets: readonly string[], lines: readonly string[]): void {
  const bytes = Buffer.from(['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n'), 'latin1');
  const limits = { maxHeadBytes: 65_536, maxFields: 100, maxTargetBytes: 8_192 };
  const head: ReturnType<typeof parseResponseHead> = parseResponseHead(bytes, 0, limits);
  if (head === undefined || isHeadError(head)) throw new Error('the head does not parse');
  const mask = compileMask(secrets);
  print(what, bytes.length > 1_000 ? 5 : 20_000, () => run(head, bytes, mask));
}

// Masking writes into the head: each run gets the original bytes.
function run(head: ResponseHead, bytes: Buffer, mask: ReturnType<typeof compileMask>): void {
  bytes.copy(original);
  if (maskResponseHead(head, mask)) original.copy(bytes, 0, 0, bytes.length);
}

function compiling(what: string, secrets: readonly string[]): void {
  print(`compiling ${what}`, 5, () => compileMask(secrets));
}

/** Prints the median of the rounds and their spread; the first round warms up and is not counted. */
function print(what: string, calls: number, work: () => unknown): void {
  const rounds = Array.from({ length: ROUNDS + 1 }, () => {
    const start = process.hrtime.bigint();
    for (let call = 0; call < calls; call += 1) work();
    return Number(process.hrtime.bigint() - start) / calls / 1_000;
  });
  const sorted = rounds.slice(1).toSorted((a, b) => a - b);
  const [low, median, high] = [0, ROUNDS >> 1, ROUNDS - 1].map((at) => (sorted[at] ?? Number.NaN).toFixed(2));
  console.log(`${what.padEnd(50)} ${median} µs (${low} to ${high})`);
}
