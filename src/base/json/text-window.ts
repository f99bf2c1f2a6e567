// A text that arrives in pieces, as a parser sees it: the part around its position. What the parser has passed is forgotten,
// so that no step decodes or copies the whole text.

/** So many characters are visible from the position on, or all that are left. */
export const LOOKAHEAD = 65_536;

export class TextWindow {
  readonly #pieces: Iterator<string>;
  #text = '';
  #at = 0;
  /** Characters before the visible part. */
  #before = 0;
  #hasMore = true;

  constructor(pieces: Iterable<string>) {
    this.#pieces = pieces[Symbol.iterator]();
  }

  /** An index into the whole text. */
  get position(): number {
    return this.#before + this.#at;
  }

  /** Undefined at the end of the text. */
  get character(): string | undefined {
    return this.#text[this.#at];
  }

  /** Makes the next characters visible; throws what the pieces throw. */
  fill(): void {
    if (!this.#hasMore || this.#text.length - this.#at >= LOOKAHEAD) return;
    this.#before += this.#at;
    this.#text = this.#text.slice(this.#at);
    this.#at = 0;
    while (this.#hasMore && this.#text.length < LOOKAHEAD) {
      const { done, value } = this.#pieces.next();
      if (done === true) this.#hasMore = false;
      else this.#text += value;
    }
  }

  skip(): void {
    this.#at += 1;
  }

  isSpace(): boolean {
    const code = this.#text.charCodeAt(this.#at);
    return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;
  }

  /** The text that the sticky pattern has here, which is taken. */
  match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }
}
