// The header fields of a page: a policy that allows the style and the script of the page alone, by their hashes, and nothing from elsewhere.
import { createHash } from 'node:crypto';

export type PageSources = {
  /** The whole text of its `style` element. */
  readonly style: string;
  /** The whole text of its `script` element; undefined: the page has none. */
  readonly script?: string;
  /** The script may send requests to the origin of the page. */
  readonly connects?: boolean;
};

/** Browsers send `Origin: null` with a form of a page that has the policy no-referrer. */
export function pageFieldsOf({
  style,
  script,
  connects = false,
}: PageSources): Readonly<Record<string, string>> {
  const scripts = script === undefined ? [] : [`script-src ${hashOf(script)}`];
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': [
      "default-src 'none'",
      `style-src ${hashOf(style)}`,
      ...scripts,
      ...(connects ? ["connect-src 'self'"] : []),
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join('; '),
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'same-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
  };
}

/** A source of the policy. */
function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
