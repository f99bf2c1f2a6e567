// PEM text (RFC 7468) to and from certificates.
import { X509Certificate } from 'node:crypto';

/** One certificate's DER as PEM text that ends with a newline. */
export function toCertificatePem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';
// Whole lines, as OpenSSL reads them: a certificate that an operator has commented out is none.
const BLOCK = new RegExp(`^${BEGIN}[ \\t]*\\r?\\n[A-Za-z0-9+/=\\s]+^${END}(?=[ \\t]*\\r?$)`, 'gm');

/** The texts of the certificates in a bundle, in order. Text and blocks of other kinds between them are skipped. */
export function certificateBlocks(bundlePem: string): readonly string[] {
  return bundlePem.match(BLOCK) ?? [];
}

/** The DER of one of those texts. It is not checked. */
export function blockToDer(block: string): Buffer {
  return Buffer.from(block.slice(BEGIN.length, -END.length), 'base64');
}

/**
 * Every certificate of a bundle, in order, or the number (from 1) of the first that cannot be read. Text and blocks of
 * other kinds between them are skipped; a truncated certificate counts as unreadable, not as absent.
 */
export function parseCertificates(bundlePem: string): X509Certificate[] | number {
  const blocks = bundlePem.match(/-----BEGIN CERTIFICATE-----[^]*?(?:-----END CERTIFICATE-----|$)/g) ?? [];
  const certificates: X509Certificate[] = [];
  for (const block of blocks) {
    try {
      certificates.push(new X509Certificate(block));
    } catch {
      return certificates.length + 1;
    }
  }
  return certificates;
}
