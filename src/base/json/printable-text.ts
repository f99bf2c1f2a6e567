// Patterns for text without control characters. Ranges, not Unicode properties: clients in other languages read these
// patterns from an OpenAPI document, and Python, for one, has no `\p`. Pure.

/** Control characters and the separators of lines and paragraphs: Cc, Zl, Zp. */
const CONTROLS = String.raw`\u0000-\u001f\u007f-\u009f\u2028\u2029`;
const LONE_SURROGATES = String.raw`\ud800-\udfff`;
/** They change the direction of the text after them, which then shows names in another order. */
const BIDIRECTIONAL = String.raw`\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069`;
/** What is invisible (Cf) in the basic plane. */
const INVISIBLE = String.raw`\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb`;

/** One line of free text. */
export const LINE: RegExp = new RegExp(`^[^${CONTROLS}]*$`, 'u');
/** A name that is shown in lists of names. */
export const NAME: RegExp = new RegExp(`^[^${CONTROLS}${LONE_SURROGATES}${BIDIRECTIONAL}]*$`, 'u');
/** As documents have it: not every language has patterns with surrogates, and no body may have a lone one anyway. */
export const NAME_PATTERN: string = `^[^${CONTROLS}${BIDIRECTIONAL}]*$`;
/** A name that is compared: two that look the same are the same. */
export const VISIBLE: RegExp = new RegExp(`^[^${CONTROLS}${INVISIBLE}]*$`, 'u');

/** Also in the other planes, which a pattern for all languages cannot name. */
export function hasInvisible(text: string): boolean {
  return /\p{Cf}/u.test(text);
}
