// The cost of one intercepted host in microseconds: signing a leaf certificate and creating a SecureContext.
// `node bench/leaf-mint.ts`.
import { createCertificateAuthority } from '../src/tls/certificate-authority.ts';
import { createLeafCache } from '../src/tls/leaf-cache.ts';

const ROUNDS = 9;
const CALLS = 1_000;

for (const keyType of ['p256', 'rsa'] as const) {
  const ca = createCertificateAuthority({ keyType });
  const now = new Date();
  let host = 0;
  const subject = (): { host: string; kind: 'name' } => ({ host: `r${(host += 1)}.good.test`, kind: 'name' });
  report(`${keyType}: leaf`, () => ca.issueLeaf(subject(), now));

  const cache = createLeafCache(ca);
  report(`${keyType}: leaf and context, new host`, () => cache.contextFor(subject()));
  const known = subject();
  report(`${keyType}: context, known host`, () => cache.contextFor(known));
}

/** Prints the median of the rounds and their spread; the first round warms up and is not counted. */
function report(what: string, work: () => unknown): void {
  const rounds = Array.from({ length: ROUNDS + 1 }, () => {
    const start = process.hrtime.bigint();
    for (let call = 0; call < CALLS; call += 1) work();
    return Number(process.hrtime.bigint() - start) / CALLS / 1_000;
  });
  const sorted = rounds.slice(1).toSorted((a, b) => a - b);
  const [low, median, high] = [0, ROUNDS >> 1, ROUNDS - 1].map((at) => (sorted[at] ?? Number.NaN).toFixed(1));
  console.log(`${what.padEnd(40)} ${median} µs (${low} to ${high})`);
}
