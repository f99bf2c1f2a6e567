// The cost of searching bodies for secrets, in microseconds per KiB: prose, JSON with escapes, random bytes, and bodies that
// resemble secrets; in pieces of the size of a TLS record. `node bench/scrub.ts`.
import { createHash } from 'node:crypto';
import { BodyMask } from '../src/proxy/mask/body-mask.ts';
import { type Mask, compileMask } from '../src/proxy/mask/mask.ts';

const ROUNDS = 9;
const BODY_BYTES = 1_048_576;
const RECORD_BYTES = 16_384;

const token = (i: number): string => `ghp_${(i * 7_919 + 1_000_003).toString(36).repeat(6).slice(0, 36)}`;
const two = compileMask([token(1), `Bearer ${token(1)}`]);
const thousand = compileMask(Array.from({ length: 500 }, (_, i) => [token(i), `Bearer ${token(i)}`]).flat());
const alike = compileMask(Array.from({ length: 64 }, (_, i) => `${'a'.repeat(4_000)}x${i}`));

const prose = Buffer.alloc(BODY_BYTES, 'Lorem ipsum, dolor sit amet; Bearer tokens are not here. ');
const json = Buffer.alloc(BODY_BYTES, '{"id":4711,"url":"https://api.test/a%20b?c=%2Fd","ok":true},\n');
const escaped = Buffer.alloc(
  BODY_BYTES,
  '%4c%6f%72%65%6d%20%69%70%73%75%6d%2c%20%64%6f%6c%6f%72%20%73%69%74%20%61%6d%65%74%3b%20',
);
const page = Buffer.alloc(
  BODY_BYTES,
  '&lt;p class=&quot;a&quot;&gt;Lorem ipsum, dolor&#32;sit&#x20;amet&lt;/p&gt;',
);
const noise = Buffer.concat(
  Array.from({ length: BODY_BYTES / 32 }, (_, i) => createHash('sha256').update(String(i)).digest()),
);

report('prose, 2 secrets', two, prose);
report('prose, 1,000 secrets', thousand, prose);
report('prose, all of it escaped, 2 secrets', two, escaped);
report('prose, escaped, 1,000 secrets', thousand, escaped);
report('JSON with escapes, 2 secrets', two, json);
report('page with references, 2 secrets', two, page);
report('noise, 2 secrets', two, noise);
report('noise, 1,000 secrets', thousand, noise);
report('base64, 2 secrets', two, Buffer.from(noise.toString('base64').slice(0, BODY_BYTES)));
report('nothing but a secret', two, Buffer.alloc(BODY_BYTES, token(1)));
report('nothing but a secret, escaped', two, Buffer.alloc(BODY_BYTES, escapedOf(token(1))));
report('text that resembles 64 long secrets', alike, Buffer.alloc(BODY_BYTES, 'a'));
report('likenesses, escaped', alike, Buffer.alloc(BODY_BYTES, '%61'));

function escapedOf(text: string): string {
  return [...text].map((char) => `%${char.charCodeAt(0).toString(16)}`).join('');
}

/** Prints the median of the rounds and their spread; the first round warms up and is not counted. */
function report(what: string, mask: Mask, body: Buffer): void {
  const rounds = Array.from({ length: ROUNDS + 1 }, () => {
    const bytes = Buffer.from(body);
    const start = process.hrtime.bigint();
    search(mask, bytes);
    return Number(process.hrtime.bigint() - start) / 1_000 / (BODY_BYTES / 1_024);
  });
  const sorted = rounds.slice(1).toSorted((a, b) => a - b);
  const [low, median, high] = [0, ROUNDS >> 1, ROUNDS - 1].map((at) => sorted[at] ?? Number.NaN);
  const speed = Math.round(1_024 / (median ?? Number.NaN));
  const spread = `(${low?.toFixed(2)} to ${high?.toFixed(2)})`;
  console.log(`${what.padEnd(38)} ${median?.toFixed(2)} µs/KiB ${spread}, ${speed} MB/s`);
}

function search(mask: Mask, bytes: Buffer): number {
  const body = new BodyMask(mask);
  let left = 0;
  const emit = (piece: Buffer): void => void (left += piece.length);
  for (let at = 0; at < bytes.length; at += RECORD_BYTES)
    body.push(bytes.subarray(at, at + RECORD_BYTES), emit);
  body.end(emit);
  return left;
}
