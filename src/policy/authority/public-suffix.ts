// The door to tldts: does `*.suffix` span names that belong to different owners?
import { parse } from 'tldts';

/**
 * True if the list of public suffixes holds `suffix` (`com`, `github.io`), also as the parent of a listed star (`kobe.jp`).
 * A top-level name that the list does not hold (`internal`, `test`) is the operator's own, not public.
 */
export function isPublicSuffix(suffix: string): boolean {
  const found = parse(suffix, OPTIONS);
  return found.publicSuffix === suffix && (found.isIcann === true || found.isPrivate === true);
}

// The input is a canonical name already: nothing to extract or to validate.
const OPTIONS = {
  allowPrivateDomains: true,
  extractHostname: false,
  validateHostname: false,
  detectIp: false,
};
