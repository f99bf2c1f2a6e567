// The CA of a box is made once, is the same for every later start, and is gone with its box. Nobody else can read its file.
import { randomUUID, X509Certificate } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BoxAuthorities, bundleOf } from '../../src/box-host/box-authorities.ts';
import { Secret } from '../../src/base/secret.ts';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { createScratch } from '../support/scratch.ts';

it('each box has one of its own, which stays the same', async () => {
  await using scratch = await createScratch();
  const [one, two] = [randomUUID(), randomUUID()];
  const first = await BoxAuthorities.open(scratch.path, []);
  const [ofOne, ofTwo] = [await first.obtain(one), await first.obtain(two)];
  expect(ofOne.certificatePem).not.toBe(ofTwo.certificatePem);
  expect(new X509Certificate(ofOne.certificatePem).ca).toBe(true);
  const again = await BoxAuthorities.open(scratch.path, [one]);
  const known = await again.obtain(one);
  expect(known.certificatePem).toBe(ofOne.certificatePem);
  expect(known.key.equals(ofOne.key.reveal())).toBe(true);
  // It was no box's any more.
  expect((await again.obtain(two)).certificatePem).not.toBe(ofTwo.certificatePem);
});

it('only this user can read a file, which is gone with its box', async () => {
  await using scratch = await createScratch();
  const id = randomUUID();
  const authorities = await BoxAuthorities.open(scratch.path, []);
  await authorities.obtain(id);
  const folder = join(scratch.path, 'authorities');
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect((await stat(join(folder, `${id}.pem`))).mode & 0o777).toBe(0o600);
  await authorities.remove(id);
  await authorities.remove(id);
  expect(await readdir(folder)).toEqual([]);
});

it('one that clients could not verify is replaced, also one that was cut off', async () => {
  await using scratch = await createScratch();
  const [expired, cut] = [randomUUID(), randomUUID()];
  const authorities = await BoxAuthorities.open(scratch.path, []);
  const old = createCertificateAuthority({ now: new Date('2001-01-01') });
  const fileOf = (id: string): string => join(scratch.path, 'authorities', `${id}.pem`);
  await writeFile(fileOf(expired), old.certificatePem + old.privateKeyPem);
  await authorities.obtain(cut);
  await writeFile(fileOf(cut), (await readFile(fileOf(cut), 'utf8')).slice(0, 400));
  for (const id of [expired, cut]) {
    const { certificatePem } = await authorities.obtain(id);
    expect(new X509Certificate(certificatePem).validToDate.getTime()).toBeGreaterThan(Date.now());
    expect((await authorities.obtain(id)).certificatePem).toBe(certificatePem);
  }
});

it('one that cannot be read is not replaced', async () => {
  await using scratch = await createScratch();
  const id = randomUUID();
  const authorities = await BoxAuthorities.open(scratch.path, []);
  await mkdir(join(scratch.path, 'authorities', `${id}.pem`));
  await expect(authorities.obtain(id)).rejects.toMatchObject({ code: 'EISDIR' });
});

it('the bundle of a box has its CA in place of that of the sidecar', () => {
  const [own, sidecars, web] = ['Box', 'Sidecar', 'Web'].map((commonName) =>
    createCertificateAuthority({ commonName }),
  );
  if (!own || !sidecars || !web) throw new Error('three are made');
  const authority = { certificatePem: own.certificatePem, key: new Secret(own.privateKeyPem) };
  const bundlePem = sidecars.certificatePem + web.certificatePem;
  expect(bundleOf(authority, { bundlePem, sidecarCaPem: sidecars.certificatePem })).toBe(
    own.certificatePem + web.certificatePem,
  );
});

it('one that cannot be stored leaves no copy of its key', async () => {
  await using scratch = await createScratch();
  const id = randomUUID();
  const authorities = await BoxAuthorities.open(scratch.path, [id]);
  const folder = join(scratch.path, 'authorities');
  const obtained = authorities.obtain(id);
  // It is not there yet: read as missing, and then in the way.
  await mkdir(join(folder, `${id}.pem`));
  await expect(obtained).rejects.toThrow();
  expect(await readdir(folder)).toEqual([`${id}.pem`]);
});
