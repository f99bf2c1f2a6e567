// The JSON text of a response in steps, so that a page of a long list need not hold up the requests of others. Pure.
import type { Steps } from '../../base/steps.ts';

/** A list of a response whose members are made while its text is: each from its row, which is much less. */
export class MappedList<Member> {
  readonly length: number;
  readonly #memberAt: (index: number) => Member;

  constructor(length: number, memberAt: (index: number) => Member) {
    this.length = length;
    this.#memberAt = memberAt;
  }

  at(index: number): Member {
    return this.#memberAt(index);
  }

  /** For JSON.stringify. */
  toJSON(): readonly Member[] {
    return Array.from({ length: this.length }, (_, index) => this.#memberAt(index));
  }
}

export function mapList<Row, Member>(
  rows: readonly Row[],
  toMember: (row: Row) => Member,
): MappedList<Member> {
  return new MappedList(rows.length, (index) => toMember(rows[index] as Row));
}

type List = readonly unknown[] | MappedList<unknown>;

/** Members of a list in one step: some 50 µs for those of the audit log. */
const MEMBERS = 8;

/** Whether the text of a body is made in more than one step. */
export function isLarge(body: unknown): body is object {
  if (typeof body !== 'object' || body === null) return false;
  if (isList(body)) return body.length > MEMBERS;
  for (const value of Object.values(body)) if (isList(value) && value.length > MEMBERS) return true;
  return false;
}

/** What JSON.stringify gives for the body, which has no `toJSON`. Its lists, or those in it, are made in steps. */
export function* jsonInSteps(body: object): Steps<string> {
  const pieces: string[] = [];
  if (isList(body)) {
    yield* addList(pieces, body);
    return pieces.join('');
  }
  let separator = '{';
  for (const [name, value] of Object.entries(body)) {
    const start = `${separator}${JSON.stringify(name)}:`;
    if (isList(value)) {
      pieces.push(start);
      yield* addList(pieces, value);
    } else {
      const text = JSON.stringify(value) as string | undefined;
      if (text === undefined) continue;
      pieces.push(start, text);
    }
    separator = ',';
  }
  pieces.push(separator === '{' ? '{}' : '}');
  return pieces.join('');
}

function* addList(pieces: string[], list: List): Steps<void> {
  for (let index = 0; index < list.length; index += 1) {
    if (index > 0 && index % MEMBERS === 0) yield;
    const text = JSON.stringify(list.at(index)) as string | undefined;
    pieces.push(index === 0 ? '[' : ',', text ?? 'null');
  }
  pieces.push(list.length === 0 ? '[]' : ']');
}

function isList(value: unknown): value is List {
  return Array.isArray(value) || value instanceof MappedList;
}
