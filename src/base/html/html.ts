// HTML that is safe by default: every text in a template is escaped, and only what another template has made is not. Pure.

/** Made by `html` alone, or of texts of this program. */
export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  static fromTemplate(text: string): Html {
    return new Html(text);
  }

  toString(): string {
    return this.#text;
  }
}

type Value = Html | string | number | readonly Html[] | undefined | false;

/** Texts become text, in an element or in a quoted attribute. `undefined` and `false` are nothing. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  let text = parts[0] ?? '';
  for (const [at, value] of values.entries()) text += toText(value) + (parts[at + 1] ?? '');
  return Html.fromTemplate(text);
}

function toText(value: Value): string {
  if (value === undefined || value === false) return '';
  if (typeof value === 'object') return value instanceof Html ? String(value) : value.join('');
  return escapeText(String(value));
}

export function escapeText(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
