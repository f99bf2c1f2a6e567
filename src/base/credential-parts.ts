// The parts of a header value that a host may echo by themselves: what follows the scheme, the user name and password of
// `Basic`, the items of a list, the values of parameters and cookies. Pure; it gets texts and never sees the secret type.

import { isUtf8 } from 'node:buffer';

/** Shorter parts would match by chance when responses are masked. */
const MIN_PART_BYTES = 8;

/** Each part once and without the value itself, in time linear in its length. */
export function credentialParts(value: string): readonly string[] {
  const [, scheme = '', rest = ''] = SCHEME.exec(value) ?? [];
  const parts = rest === '' ? [] : [rest];
  if (scheme.toLowerCase() === 'basic') parts.push(...userAndPassword(rest));
  const list = rest === '' ? value : rest;
  // Also where quotes mean nothing: a cookie may contain one.
  const plain = list.split(/[,;]/).map((item) => item.trim());
  const items = [...new Set([...splitList(list), ...plain])];
  for (const item of items) {
    parts.push(...partsOfItem(item));
    // Several credentials in one value, each with its scheme.
    const credential = items.length > 1 ? SCHEME.exec(item)?.[2] : undefined;
    if (credential !== undefined) parts.push(credential, ...partsOfItem(credential));
  }
  return [...new Set(parts)].filter((part) => Buffer.byteLength(part) >= MIN_PART_BYTES && part !== value);
}

/** RFC 9110 §11.4. */
const SCHEME = /^([A-Za-z][A-Za-z0-9-]*)[ \t]+(\S.*)$/;

/** RFC 7617. The user name is the secret where an API takes a key with an empty password. */
function userAndPassword(encoded: string): readonly string[] {
  const bytes = Buffer.from(encoded, 'base64');
  const pair = bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
  const colon = pair.indexOf(':');
  return colon < 0 ? [pair] : [pair.slice(0, colon), pair.slice(colon + 1)];
}

/** The items between commas (RFC 9110 §5.6.1) and semicolons (cookies, RFC 6265 §4.2) that are not inside quotes. */
function splitList(text: string): readonly string[] {
  const items: string[] = [];
  let [start, isQuoted] = [0, false];
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (isQuoted && char === '\\') at += 1;
    else if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (char === ',' || char === ';')) {
      items.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  items.push(text.slice(start).trim());
  return items;
}

/** The value of a parameter or cookie, or else the item itself. `abcd==` is a token with its padding. */
function partsOfItem(item: string): readonly string[] {
  const [, , written = ''] = /^([^\s="]+)\s*=\s*(.*)$/.exec(item) ?? [];
  if (/^=*$/.test(written)) return [item];
  const value = /^"(.*)"$/.exec(written)?.[1] ?? written;
  return [value, value.replace(/\\(.)/g, '$1'), percentDecoded(value)];
}

/** OAuth 1.0 encodes the values of its parameters (RFC 5849 §3.5.1), and frameworks encode those of cookies. */
function percentDecoded(text: string): string {
  try {
    return text.includes('%') ? decodeURIComponent(text) : text;
  } catch {
    return text;
  }
}
