// What the page says of the CA: what to do before it ends, and in a rotation which one follows.
import { expect, it } from 'vitest';
import { describeAuthority } from '../../../src/sidecar/page/state-groups.ts';
import { createRotatingAuthority } from '../../../src/tls/authority-rotation.ts';
import { createCertificateAuthority } from '../../../src/tls/certificate-authority.ts';

const DAY_MS = 24 * 3_600_000;
const now = Date.now();

it('the page asks for a rotation in the last 30 days, and in a rotation names the CA that follows in place of that', () => {
  const ca = createRotatingAuthority({
    ...createCertificateAuthority(),
    notAfter: new Date(now + 3 * DAY_MS),
  });
  const before = describeAuthority(ca, now);
  expect(before.problem).toMatch(/^The CA certificate ends in 3 days.*ca rotate/);
  const next = createCertificateAuthority();
  ca.follow({ ca: next, signsFrom: new Date(now + DAY_MS) });
  const { rows, problem } = describeAuthority(ca, now);
  expect(problem).toBeUndefined();
  expect(rows).toContainEqual(['Next CA fingerprint', next.fingerprintSha256]);
});

it('once the next CA signs, the page shows it as the CA', () => {
  const ca = createRotatingAuthority(createCertificateAuthority());
  const next = createCertificateAuthority();
  ca.follow({ ca: next, signsFrom: new Date(now - DAY_MS) });
  const { rows } = describeAuthority(ca, now);
  expect(rows).toContainEqual(['CA fingerprint', next.fingerprintSha256]);
  expect(rows.map(([name]) => name)).not.toContain('Next CA fingerprint');
});

it('without a rotation the page names no CA that follows', () => {
  const { rows } = describeAuthority(createRotatingAuthority(createCertificateAuthority()), now);
  expect(rows.map(([name]) => name)).toEqual(['CA fingerprint', 'CA ends']);
});
