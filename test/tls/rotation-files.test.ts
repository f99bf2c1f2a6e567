import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rotationFiles, TAIL_MS } from '../../src/tls/authority-rotation.ts';
import {
  loadCertificateAuthority,
  loadOrCreateCertificateAuthority,
} from '../../src/tls/certificate-authority.ts';
import { completeRotation, createNextAuthority, readNextAuthority } from '../../src/tls/rotation-files.ts';
import { createScratch } from '../support/scratch.ts';

const signsFrom = new Date(Date.now() + 7 * 24 * 3_600_000);

async function createPair(keyType: 'p256' | 'rsa' = 'p256') {
  const scratch = await createScratch();
  const files = { certificateFile: join(scratch.path, 'ca.pem'), keyFile: join(scratch.path, 'ca.key') };
  const { ca } = await loadOrCreateCertificateAuthority(files, { keyType });
  return { scratch, files, ca, [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose]() };
}

describe('the files of the CA that follows', () => {
  it('are beside those of the current one, and the key is private', async () => {
    await using pair = await createPair();
    expect(await readNextAuthority(pair.files)).toBeUndefined();
    expect(await createNextAuthority(pair.files, signsFrom)).toBe(true);
    const next = await readNextAuthority(pair.files);
    expect(next?.signsFrom).toEqual(signsFrom);
    expect(next?.ca.spkiSha256).not.toBe(pair.ca.spkiSha256);
    const { mode } = await stat(rotationFiles(pair.files).keyFile);
    expect(mode & 0o777).toBe(0o600);
    expect((await loadCertificateAuthority(pair.files)).spkiSha256).toBe(pair.ca.spkiSha256);
  });

  it.runIf(process.getuid?.() === 0)('belong to the user of the proxy, for whom root rotates', async () => {
    await using pair = await createPair();
    const owner = { uid: 12_345, gid: 12_346 };
    await createNextAuthority(pair.files, signsFrom, owner);
    for (const file of Object.values(rotationFiles(pair.files)))
      expect(await stat(file)).toMatchObject(owner);
  });

  it('are not replaced by a second rotation', async () => {
    await using pair = await createPair();
    await createNextAuthority(pair.files, signsFrom);
    const before = await readNextAuthority(pair.files);
    expect(await createNextAuthority(pair.files, new Date())).toBe(false);
    const after = await readNextAuthority(pair.files);
    expect([after?.ca.spkiSha256, after?.signsFrom]).toEqual([before?.ca.spkiSha256, signsFrom]);
  });

  it('have a key of the same kind', async () => {
    await using pair = await createPair('rsa');
    await createNextAuthority(pair.files, signsFrom);
    const text = await readFile(rotationFiles(pair.files).keyFile, 'utf8');
    expect(text.length).toBeGreaterThan(1_000);
  });

  it('take the place of the current ones once, where several processes see that it is time', async () => {
    for (let round = 0; round < 20; round++) {
      await using pair = await createPair();
      await createNextAuthority(pair.files, signsFrom);
      const next = await readNextAuthority(pair.files);
      const endMs = signsFrom.getTime() + TAIL_MS;
      const start = async (): Promise<string> => {
        await completeRotation(pair.files, endMs);
        return (await loadCertificateAuthority(pair.files)).spkiSha256;
      };
      const seen = await Promise.all([start(), start(), start()]);
      expect(new Set(seen)).toEqual(new Set([next?.ca.spkiSha256]));
      expect(await readNextAuthority(pair.files)).toBeUndefined();
    }
  });

  it('take the place of the current ones when no leaf of these is valid any more', async () => {
    await using pair = await createPair();
    await createNextAuthority(pair.files, signsFrom);
    const next = await readNextAuthority(pair.files);
    const endMs = signsFrom.getTime() + TAIL_MS;
    expect(await completeRotation(pair.files, endMs - 1)).toBe(false);
    expect(await completeRotation(pair.files, endMs)).toBe(true);
    expect((await loadCertificateAuthority(pair.files)).spkiSha256).toBe(next?.ca.spkiSha256);
    expect([await readNextAuthority(pair.files), await completeRotation(pair.files, endMs)]).toEqual([
      undefined,
      false,
    ]);
  });

  it('take it too when the current CA has ended before', async () => {
    await using pair = await createPair();
    await createNextAuthority(pair.files, new Date(pair.ca.notAfter.getTime() + 1));
    expect(await completeRotation(pair.files, pair.ca.notAfter.getTime())).toBe(true);
  });

  it('are completed when the process was killed between the key and the certificate', async () => {
    await using pair = await createPair();
    await createNextAuthority(pair.files, signsFrom);
    const next = await readNextAuthority(pair.files);
    await rename(rotationFiles(pair.files).keyFile, pair.files.keyFile);
    // Whatever the clock says by then.
    expect(await completeRotation(pair.files, 0)).toBe(true);
    expect((await loadCertificateAuthority(pair.files)).spkiSha256).toBe(next?.ca.spkiSha256);
  });

  it('without their key do not replace the current certificate', async () => {
    await using pair = await createPair();
    await createNextAuthority(pair.files, signsFrom);
    await rm(rotationFiles(pair.files).keyFile);
    expect(await completeRotation(pair.files, 0)).toBe(true);
    expect((await loadCertificateAuthority(pair.files)).spkiSha256).toBe(pair.ca.spkiSha256);
  });

  it('with a date that cannot be read are refused', async () => {
    await using pair = await createPair();
    await createNextAuthority(pair.files, signsFrom);
    await writeFile(rotationFiles(pair.files).scheduleFile, 'soon');
    await expect(readNextAuthority(pair.files)).rejects.toThrow(
      /ca\.key\.rotation: no date in the form of ISO 8601/,
    );
    await expect(completeRotation(pair.files, Date.now())).rejects.toThrow(/no date/);
  });
});
