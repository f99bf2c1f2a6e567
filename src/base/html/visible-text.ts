// Text of others as HTML: it cannot be mistaken for something else. Characters that are not seen, or that change the direction of
// what follows, are shown by their numbers; marks that pile up are counted; each text is isolated from its surroundings; a long one
// is cut and its size is said. Pure.
import { escapeText, Html, html } from './html.ts';

/** Controls, formats (bidirectional, zero width, tags), separators of lines, fillers, and variation selectors that emoji do not use. */
const NOTED =
  /([\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|\u034f|\u17b4|\u17b5|[\u{e0100}-\u{e01ef}])\1*|(?<=\p{M}{4})\p{M}+/gu;

type Shape = {
  /** Of UTF-16 units that are shown. */
  readonly max: number;
  /** A block keeps tabs and line breaks. */
  readonly isBlock?: boolean;
  /** Of what the text is the beginning of; the text itself when absent. */
  readonly wholeBytes?: number;
};

/** Isolated, on one line unless it is a block. */
export function visibleText(text: string, { max, isBlock = false, wholeBytes }: Shape): Html {
  const shown = cutText(text, max);
  const { marked, isWhole } = markUnseen(shown, isBlock);
  const isCut = !isWhole || shown.length < text.length || (wholeBytes ?? 0) > Buffer.byteLength(text);
  const rest =
    isCut && html`<span class="cut">… ${formatBytes(wholeBytes ?? Buffer.byteLength(text))}</span>`;
  return html`<bdi>${Html.fromTemplate(marked)}</bdi>${rest}`;
}

/** As `visibleText`, where there can be no elements: what is not seen is shown by its number in brackets. */
export function visiblePlainText(text: string, max: number): string {
  const shown = cutText(text, max);
  const noted = shown.replaceAll(NOTED, (run: string, character?: string) =>
    character === undefined ? `[${run.length} combining]` : `[${numberOf(character, run.length)}]`,
  );
  return shown.length < text.length ? `${noted}…` : noted;
}

/** Without half of a character at its end. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text.toWellFormed();
  const isBetween = /^[\ud800-\udbff]$/.test(text[max - 1] ?? '');
  return text.slice(0, isBetween ? max - 1 : max).toWellFormed();
}

/** Of one text: each of them takes ten times as many bytes as it had. */
const MAX_MARKS = 2_000;

function markUnseen(text: string, isBlock: boolean): { readonly marked: string; readonly isWhole: boolean } {
  let marked = '';
  let marks = 0;
  let from = 0;
  for (const { 0: run, 1: character, index } of text.matchAll(NOTED)) {
    if (isBlock && (character === '\n' || character === '\t')) continue;
    if (marks === MAX_MARKS) return { marked: marked + escapeText(text.slice(from, index)), isWhole: false };
    marks += 1;
    const mark = character === undefined ? `${run.length} combining` : numberOf(character, run.length);
    marked += `${escapeText(text.slice(from, index))}<b class="mark">${mark}</b><wbr>`;
    from = index + run.length;
  }
  return { marked: marked + escapeText(text.slice(from)), isWhole: true };
}

function numberOf(character: string, units: number): string {
  const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  const times = units / character.length;
  return `U+${number}${times > 1 ? ` ×${times}` : ''}`;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB'] as const;

export function formatBytes(bytes: number): string {
  const step = Math.min(UNITS.length - 1, bytes < 1024 ? 0 : Math.floor(Math.log2(bytes) / 10));
  const number = bytes / 1024 ** step;
  return `${step === 0 ? number : number.toFixed(1)} ${UNITS[step]}`;
}
