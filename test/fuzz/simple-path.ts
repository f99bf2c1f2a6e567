// A second reading of paths and path patterns for the fuzz targets, slow and plain: loops to the fixpoint and regular
// expressions. It must not use the product's own.

export type Readings = {
  readonly decoded: string;
  readonly cut: string;
  readonly folded: string;
  readonly foldedCut: string;
};

export type Spelling = 'as written' | 'decoded' | 'folded';

/** All readings of a path that rules are applied to; undefined where it must be rejected. */
export function readings(sent: string): Readings | undefined {
  if (sent.length > 8192 || !sent.startsWith('/')) return undefined;
  if (/%([^0-9A-Fa-f]|[0-9A-Fa-f]([^0-9A-Fa-f]|$)|$)/.test(sent) || sent.includes('#')) return undefined;
  const decoded = decode(sent);
  if ([...decoded].some((character) => character < ' ' || character === '\x7f')) return undefined;
  if (Buffer.from(decoded, 'latin1').toString('utf8').includes('\ufffd')) {
    // A replacement character may also have been sent as one.
    if (!Buffer.from(Buffer.from(decoded, 'latin1').toString('utf8')).equals(Buffer.from(decoded, 'latin1')))
      return undefined;
  }
  const folded = fold(decoded);
  if (folded === undefined) return undefined;
  const [cut, foldedCut] = [shortest(decoded), shortest(folded)];
  const isDotted = [decoded, cut, folded, foldedCut].some(hasDotSegment);
  return isDotted || sent.split('/').some(hasOpenParameter) ? undefined : { decoded, cut, folded, foldedCut };
}

function shortest(decoded: string): string {
  const [path = ''] = decoded.split(/[?#]/);
  const segments = path.split('/').map((segment) => segment.split(';')[0]);
  return merge(segments.join('/'));
}

/** Normalized and decoded until nothing changes, in at most three changes. */
export function fold(decoded: string): string | undefined {
  const history = [decoded];
  for (;;) {
    const last = history.at(-1) ?? '';
    const characters = [
      ...Buffer.from(last, 'latin1').toString('utf8').replaceAll('´', '/').normalize('NFKC'),
    ];
    const text = characters.map((one) => ('⁄∕∖¥₩'.includes(one) ? '/' : one === '٪' ? '%' : one)).join('');
    const next = [...last].every((one) => one < '\x80') ? last : decode(Buffer.from(text).toString('latin1'));
    if (next === last) return last;
    if (history.length === 4) return undefined;
    history.push(next);
  }
}

/** What an upstream may read that decodes at most three times, or takes a backslash for a character of a name. */
export function partialReadings(sent: string): readonly string[] {
  const once = (text: string): string =>
    text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  const depths = [sent, once(sent), once(once(sent)), once(once(once(sent)))];
  const merged = depths.flatMap((text) => [merge(text), merge(text.replace(/\\/g, '/'))]);
  return [...merged, ...merged.map(shortest)];
}

/** Percent-decoded until nothing changes. */
export function decode(text: string): string {
  let now = text;
  for (let before = ''; before !== now; ) {
    before = now;
    now = now.replace(/%([0-9A-Fa-f]{2})/, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return merge(now.replace(/\\/g, '/'));
}

/** Does the pattern match the path? Both in the same spelling. */
export function matches(pattern: string, path: string, spelling: Spelling): boolean {
  const isOpenEnded = pattern.endsWith('*');
  const literals = pattern.replace(/\/\*\*$/, '/*').split('*');
  const parts = literals.map((literal) => escape(spell(literal, spelling)));
  const last = isOpenEnded ? parts.pop() : undefined;
  const body = parts.join('[^/]*');
  return new RegExp(`^${body}${last === undefined ? '' : '[^]*'}$`).test(path);
}

function spell(literal: string, spelling: Spelling): string {
  if (spelling === 'as written') return literal;
  const decoded = decode(literal);
  return spelling === 'decoded' ? decoded : (fold(decoded) ?? decoded);
}

/** Also one that only becomes a dot segment when its parameter, the query or the fragment is cut off. */
function hasDotSegment(path: string): boolean {
  return path.split('/').some((segment) => {
    const [name = ''] = segment.split(/[;?#]/);
    return ['.', '..'].includes(name.replace(/\s/g, ''));
  });
}

/** Cut before it is decoded it ends at the next slash; behind that it ends earlier. */
function hasOpenParameter(segment: string): boolean {
  const [, ...parameters] = decode(segment).split(';');
  return parameters.some((parameter) => /[/?#]/.test(parameter));
}

function merge(path: string): string {
  return path.split(/\/+/).join('/');
}

function escape(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
