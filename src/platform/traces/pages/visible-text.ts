// Text of others as HTML: it cannot be mistaken for something else. Characters that are not seen, or that change the direction of
// what follows, are shown by their numbers; each text is isolated from its surroundings; a long one is cut and its size is said. Pure.
import { escapeText, Html, html } from './html.ts';

/** Controls, formats (bidirectional, zero width, tags), separators of lines, fillers, and variation selectors that emoji do not use. */
const UNSEEN =
  /([\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|\u034f|\u17b4|\u17b5|[\u{e0100}-\u{e01ef}])\1*/gu;

type Shape = {
  /** Of UTF-16 units that are shown. */
  readonly max: number;
  /** A block keeps tabs and line breaks. */
  readonly isBlock?: boolean;
  /** What the text is a beginning of: its size, as bytes. */
  readonly wholeBytes?: number;
};

/** Isolated, on one line unless it is a block. */
export function visibleText(text: string, { max, isBlock = false, wholeBytes }: Shape): Html {
  const shown = cutText(text, max);
  const marked = Html.fromTemplate(markUnseen(shown, isBlock));
  const bytes = wholeBytes ?? (shown.length < text.length ? Buffer.byteLength(text) : undefined);
  const rest = bytes === undefined ? undefined : html`<span class="cut">… ${formatBytes(bytes)}</span>`;
  return html`<bdi>${marked}</bdi>${rest}`;
}

/** Without half of a character at its end. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text.toWellFormed();
  const isBetween = /^[\ud800-\udbff]$/.test(text[max - 1] ?? '');
  return text.slice(0, isBetween ? max - 1 : max).toWellFormed();
}

function markUnseen(text: string, isBlock: boolean): string {
  let marked = '';
  let from = 0;
  for (const { 0: run, 1: character = '', index } of text.matchAll(UNSEEN)) {
    if (isBlock && (character === '\n' || character === '\t')) continue;
    const times = run.length / character.length;
    const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const mark = `<b class="mark">U+${number}${times > 1 ? ` ×${times}` : ''}</b>`;
    marked += escapeText(text.slice(from, index)) + mark;
    from = index + run.length;
  }
  return marked + escapeText(text.slice(from));
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB'] as const;

export function formatBytes(bytes: number): string {
  const step = Math.min(UNITS.length - 1, bytes < 1024 ? 0 : Math.floor(Math.log2(bytes) / 10));
  const number = bytes / 1024 ** step;
  return `${step === 0 ? number : number.toFixed(1)} ${UNITS[step]}`;
}
