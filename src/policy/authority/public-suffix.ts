// The adapter of tldts: does `*.suffix` cover names that belong to different owners?
import { parse } from 'tldts';

/**
 * True if the public suffix list contains `suffix` (`com`, `github.io`), also as the parent of a listed star (`kobe.jp`).
 * A top-level name that the list does not contain (`internal`, `test`) is the operator's own, not public.
 */
export function isPublicSuffix(suffix: string): boolean {
  const found = parse(suffix, OPTIONS);
  return found.publicSuffix === suffix && (found.isIcann === true || found.isPrivate === true);
}

// The input is already a canonical name: nothing to extract or to validate.
const OPTIONS = {
  allowPrivateDomains: true,
  extractHostname: false,
  validateHostname: false,
  detectIp: false,
};
