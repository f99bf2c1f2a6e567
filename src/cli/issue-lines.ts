// Formats issues as lines for a terminal: the file, the path in it, and what to change.
import type { Issue } from '../base/schema.ts';

/** An issue, or a warning of `check`. */
export type Finding = Pick<Issue, 'loc' | 'msg'> & { readonly type?: string };

/** One line for each issue: `FILE: rules[0].headers[1].value: message`. */
export function formatIssues(file: string, issues: readonly Finding[]): string {
  return issues.map(({ loc, msg }) => `${file}: ${escapeControls(`${formatLoc(loc)}${msg}`)}\n`).join('');
}

/** Escaped as in JSON: a terminal executes control characters, and some reverse the direction of a line. */
export function escapeControls(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function formatLoc(loc: Issue['loc']): string {
  if (loc.length === 0) return '';
  const path = loc
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : at === 0 ? part : `.${part}`))
    .join('');
  return `${path}: `;
}
