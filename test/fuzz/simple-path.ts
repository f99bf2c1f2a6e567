// A second reading of paths and path patterns for the fuzz targets, slow and plain: loops to the fixpoint and regular
// expressions. It must not use the product's own.

export type Readings = { readonly decoded: string; readonly cut: string };

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
  const [path = ''] = decoded.split(/[?#]/);
  const cut = merge(
    path
      .split('/')
      .map((segment) => segment.split(';')[0])
      .join('/'),
  );
  const isDotted = [decoded, cut].some(hasDotSegment);
  return isDotted || sent.split('/').some(hasOpenParameter) ? undefined : { decoded, cut };
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

/** Does the pattern match the path? Both as written, or both decoded. */
export function matches(pattern: string, path: string, isDecoded: boolean): boolean {
  const isOpenEnded = pattern.endsWith('*');
  const literals = pattern.replace(/\/\*\*$/, '/*').split('*');
  const parts = literals.map((literal) => escape(isDecoded ? decode(literal) : literal));
  const last = isOpenEnded ? parts.pop() : undefined;
  const body = parts.join('[^/]*');
  return new RegExp(`^${body}${last === undefined ? '' : '[^]*'}$`).test(path);
}

/** Also one that only becomes a dot segment when its parameter, the query or the fragment is cut off. */
function hasDotSegment(path: string): boolean {
  return path.split('/').some((segment) => ['.', '..'].includes(segment.split(/[;?#]/)[0] ?? ''));
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
