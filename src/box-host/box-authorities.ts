// The CA of each box. It is kept here, so that it stays the same when the box, its sidecar or this process starts again: the
// sidecars store nothing, and get it with the box.
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Secret } from '../base/secret.ts';
import { createCertificateAuthority, parseCertificateAuthority } from '../tls/certificate-authority.ts';
import { certificateBlocks } from '../tls/pem.ts';
import { codeOf } from '../tls/pem-files.ts';
import { joinCertificates } from '../tls/public-certificates.ts';

export type BoxAuthority = { readonly certificatePem: string; readonly key: Secret };

const EXTENSION = '.pem';

export class BoxAuthorities {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Removes what is of none of these boxes. */
  static async open(directory: string, boxIds: readonly string[]): Promise<BoxAuthorities> {
    const folder = join(directory, 'authorities');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const kept = new Set(boxIds.map((id) => `${id}${EXTENSION}`));
    for (const name of await readdir(folder))
      if (!kept.has(name)) await rm(join(folder, name), { recursive: true, force: true });
    return new BoxAuthorities(folder);
  }

  /**
   * That of the box; a new one if it has none, or one that its clients could not verify any more. Rejects if the file cannot
   * be read: a new one in its place would cut off the clients that trust it.
   */
  async obtain(id: string): Promise<BoxAuthority> {
    const text = await readFile(this.#fileOf(id), 'utf8').catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return '';
      throw error;
    });
    const [certificatePem = '', privateKeyPem = ''] = text.split(BEFORE_KEY);
    const known = parseCertificateAuthority({ certificatePem, privateKeyPem });
    return 'message' in known ? this.#create(id) : { certificatePem, key: new Secret(privateKeyPem) };
  }

  async remove(id: string): Promise<void> {
    await rm(this.#fileOf(id), { force: true });
  }

  async #create(id: string): Promise<BoxAuthority> {
    const { certificatePem, privateKeyPem } = createCertificateAuthority();
    const file = this.#fileOf(id);
    const draft = `${file}.${randomBytes(4).toString('hex')}`;
    try {
      await writeFile(draft, certificatePem + privateKeyPem, { flag: 'wx', mode: 0o600, flush: true });
      await rename(draft, file);
    } catch (error) {
      // It holds a key, and each attempt would leave another one.
      await rm(draft, { force: true });
      throw error;
    }
    return { certificatePem, key: new Secret(privateKeyPem) };
  }

  #fileOf(id: string): string {
    return join(this.#folder, `${id}${EXTENSION}`);
  }
}

const BEFORE_KEY = /(?=-----BEGIN [A-Z ]*PRIVATE KEY-----)/;

/** `bundlePem`, that of a sidecar whose own CA is `sidecarCaPem`, with the CA of the box in place of that of the sidecar. */
export function bundleOf(
  { certificatePem }: BoxAuthority,
  { bundlePem, sidecarCaPem }: { readonly bundlePem: string; readonly sidecarCaPem: string },
): string {
  const [sidecars] = certificateBlocks(sidecarCaPem);
  const roots = certificateBlocks(bundlePem).filter((block) => block !== sidecars);
  return joinCertificates([certificatePem, ...roots]);
}
