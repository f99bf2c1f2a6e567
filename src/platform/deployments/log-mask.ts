// Finds the values of secrets in lines that hostile code prints. One step for each byte, whatever the values and the line are (Aho and
// Corasick, 1975): the author of a deployment chooses both, and the lines of all deployments pass one process. One of the files that
// read the values of secrets.
import type { Secret } from '../../base/secret.ts';
import { type Mask, MAX_LINE_BYTES } from './log-lines.ts';
import { buildNeedleTree, type NeedleTree, nextState } from './needle-tree.ts';

const MASK = '***';
/** A shorter value would be found in texts that have nothing to do with it. */
const MIN_SECRET_BYTES = 8;
/** The beginning of a long value is one that somebody before has cut: agent servers and libraries keep a part of a long text. */
const MIN_PART_BYTES = 64;
/** Of a shorter one, where the text says by an ellipsis that it was cut. */
const MIN_CUT_BYTES = 4;
const ELLIPSIS = Buffer.from('…');
/** Of one mask: 40 bytes each. Values of ordinary size have some thousands. */
const MAX_STATES = 131_072;

/**
 * Finds each value as it is, line by line, and as JSON, base64, base64url and percent-encoding write it, and long beginnings of each. Of values
 * that are too long to be held in full, the beginning is found, and the rest of the line is masked with it. `maxStates`: for tests.
 */
export function createMask(secrets: Iterable<Secret>, maxStates: number = MAX_STATES): Mask {
  const forms = new Set([...secrets].flatMap((secret) => formsOf(secret.reveal())));
  const found = [...forms]
    .map((form) => Buffer.from(form))
    .filter(({ length }) => length >= MIN_SECRET_BYTES);
  if (found.length === 0) return (text) => text;
  const length = findLength(found, maxStates);
  if (length === undefined) return () => MASK;
  const tree = buildNeedleTree(found, length);
  return (text, isCut = false) => mask(tree, text, isCut);
}

/** How much of each form is held; undefined: the shortest beginnings of all of them are too much. */
function findLength(forms: readonly Buffer[], maxStates: number): number | undefined {
  for (let length = MAX_LINE_BYTES; length >= MIN_SECRET_BYTES; length /= 2)
    if (forms.reduce((sum, form) => sum + Math.min(form.length, length), 1) <= maxStates) return length;
  return undefined;
}

function mask(tree: NeedleTree, text: string, isCut: boolean): string {
  const bytes = Buffer.from(text);
  const ranges = findRanges(tree, bytes, isCut);
  if (ranges.length === 0) return text;
  let masked = '';
  let at = 0;
  for (const { start, end } of ranges) {
    masked += bytes.toString('utf8', at, start) + MASK;
    at = end;
  }
  return masked + bytes.toString('utf8', at);
}

type Range = { start: number; end: number };

/** In their order. What overlaps is one range. */
function findRanges(tree: NeedleTree, bytes: Buffer, isCut: boolean): readonly Range[] {
  const ranges: Range[] = [];
  const add = (start: number, end: number): void => {
    let first = start;
    for (let last = ranges.at(-1); last !== undefined && last.end > first; last = ranges.at(-1)) {
      first = Math.min(first, last.start);
      ranges.pop();
    }
    ranges.push({ start: first, end });
  };
  let state = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const before = tree.depth[state] as number;
    if (before >= MIN_CUT_BYTES && ELLIPSIS.equals(bytes.subarray(at, at + ELLIPSIS.length)))
      add(at - before, at);
    state = nextState(tree, state, bytes[at] as number);
    const length = lengthOf(tree, state);
    if (length === 0) continue;
    const isBeginning = tree.isBeginning[state] === 1;
    add(at + 1 - length, isBeginning ? bytes.length : at + 1);
    if (isBeginning) return ranges;
  }
  const open = tree.depth[state] as number;
  if (isCut && open > 0) add(bytes.length - open, bytes.length);
  return ranges;
}

/** Of what ends here. */
function lengthOf({ depth, found }: NeedleTree, state: number): number {
  const part = depth[state] as number;
  return part >= MIN_PART_BYTES ? part : (found[state] as number);
}

function formsOf(value: string): readonly string[] {
  if (Buffer.byteLength(value) < MIN_SECRET_BYTES) return [];
  const bytes = Buffer.from(value);
  // The last characters of base64 depend on what follows the value.
  const base64 = [bytes.toString('base64'), bytes.toString('base64url')];
  const open = base64.map((text) => text.replace(/=+$/, '').slice(0, -1));
  const lines = value.split(/\r?\n/);
  return [value, JSON.stringify(value).slice(1, -1), percentEncoded(value), ...open, ...lines];
}

/** A lone surrogate has no UTF-8. */
function percentEncoded(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}
