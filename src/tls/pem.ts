// PEM text (RFC 7468) to and from certificates. Knows nothing of files, keys or trust.

/** One certificate's DER as PEM text that ends with a newline. */
export function toCertificatePem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** Every certificate block of a bundle, in order; comments and other blocks between them are left out. */
export function certificateBlocks(bundlePem: string): string[] {
  return (
    bundlePem.match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g) ?? []
  ).map((block) => `${block}\n`);
}
