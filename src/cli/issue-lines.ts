// Issues as lines for a terminal: file, path into it, what to mend.
import type { Issue } from '../base/schema.ts';

/** One line an issue, `FILE: rules[0].headers[1].value: message`, with a line break behind each. */
export function formatIssues(file: string, issues: readonly Issue[]): string {
  return issues.map(({ loc, msg }) => `${file}: ${escapeControls(`${formatLoc(loc)}${msg}`)}\n`).join('');
}

/** Written as JSON writes them: a terminal obeys control characters, and some turn a line around. */
function escapeControls(text: string): string {
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
