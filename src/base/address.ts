// IP addresses as bytes: strict parsing, canonical formatting (RFC 5952), ranges, and classes of addresses.
// The spellings of inet_aton (`127.1`, `0x7f.1`, `017.0.0.1`) are rejected: resolvers accept them, and a check that reads
// an address differently from the resolver does not protect anything. No name is resolved here.

export type Address = { readonly family: 4 | 6; readonly bytes: Uint8Array; readonly text: string };

/** A range of addresses of one family; every bit after the prefix is zero. */
export type Cidr = { readonly family: 4 | 6; readonly bytes: Uint8Array; readonly prefix: number };

/** Parses a canonical dotted quad or an IPv6 address (no brackets, no zone); anything else is undefined. */
export function parseAddress(text: string): Address | undefined {
  if (text.includes(':')) {
    const groups = parseGroups(text);
    return groups && { family: 6, bytes: toBytes(groups), text: formatV6(groups) };
  }
  const bytes = parseQuad(text);
  return bytes && { family: 4, bytes, text };
}

/** Parses `address/prefix`, or a bare address as its full prefix. Set bits after the prefix are rejected: a typing slip. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/');
  const address = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (address === undefined) return undefined;
  const bits = address.bytes.length * 8;
  const written = slash < 0 ? String(bits) : text.slice(slash + 1);
  const prefix = /^(0|[1-9][0-9]{0,2})$/.test(written) ? Number(written) : -1;
  if (prefix < 0 || prefix > bits) return undefined;
  const cidr = { family: address.family, bytes: address.bytes, prefix };
  return hasHostBits(cidr) ? undefined : cidr;
}

/** Is the address inside the range? Families never mix: `::ffff:10.0.0.1` is not in `10.0.0.0/8`. */
export function cidrContains(cidr: Cidr, address: Address): boolean {
  if (cidr.family !== address.family) return false;
  const whole = cidr.prefix >> 3;
  for (let i = 0; i < whole; i += 1) if (cidr.bytes[i] !== address.bytes[i]) return false;
  const rest = cidr.prefix & 7;
  return (
    rest === 0 || ((byteAt(cidr.bytes, whole) ^ byteAt(address.bytes, whole)) & (0xff00 >> rest) & 0xff) === 0
  );
}

/** `embedded_v4`: an IPv6 form that a translator or tunnel turns into an IPv4 address, unless that has a more dangerous class. */
export type AddressClass =
  | 'public'
  | 'loopback'
  | 'private'
  | 'cgnat'
  | 'link_local'
  | 'metadata'
  | 'unspecified'
  | 'multicast'
  | 'reserved'
  | 'embedded_v4';

/** The class of an address, after the IANA special-purpose registries (RFC 6890) and the clouds' metadata services. */
export function classifyAddress(address: Address): AddressClass {
  const special = SPECIAL.find(([range]) => cidrContains(range, address))?.[1];
  if (special !== undefined) return special;
  const inner = embeddedV4(address).map(classifyAddress);
  if (inner.length > 0) return classifyInner(inner);
  if (address.family === 4) return 'public';
  // Of IPv6 only 2000::/3 is global unicast; unassigned addresses are not public. In 2001::/23, which is for protocols
  // (RFC 2928), the Teredo addresses were classified above by the IPv4 addresses that they embed.
  const isPublic = cidrContains(GLOBAL_UNICAST, address) && !cidrContains(PROTOCOLS, address);
  return isPublic ? 'public' : 'reserved';
}

/** The IPv4 addresses that an IPv6 address may represent: mapped, translated, compatible, NAT64, 6to4, Teredo. */
export function embeddedV4(address: Address): readonly Address[] {
  const layouts = EMBEDDINGS.find(([range]) => cidrContains(range, address))?.[1] ?? [];
  return layouts.map((layout) => {
    const bytes = Uint8Array.from(layout, (at) => byteAt(address.bytes, Math.abs(at)) ^ (at < 0 ? 0xff : 0));
    return { family: 4, bytes, text: bytes.join('.') };
  });
}

/** Of several readings the most dangerous counts. 0.0.0.0 alone is mostly padding, read with a layout that does not apply. */
function classifyInner(inner: readonly AddressClass[]): AddressClass {
  const worst = NEVER.find((name) => inner.includes(name));
  return worst ?? (inner.every((name) => name === 'unspecified') ? 'unspecified' : 'embedded_v4');
}

/** May a list of allowed ranges open this one? Not if all of it is public, or of a class that nothing allows. */
export function isAllowable(allowed: Cidr): boolean {
  if (allowed.prefix === allowed.bytes.length * 8) {
    const found = classifyAddress({ family: allowed.family, bytes: allowed.bytes, text: '' });
    return ALLOWABLE.has(found) || isUsableReserved(allowed);
  }
  if (isUsableReserved(allowed)) return true;
  if (SPECIAL.some(([special, name]) => !ALLOWABLE.has(name) && isWithin(allowed, special))) return false;
  const opened = [...SPECIAL.filter(([, name]) => ALLOWABLE.has(name)), ...EMBEDDINGS];
  return opened.some(([special]) => isWithin(allowed, special) || isWithin(special, allowed));
}

/** A reserved range that real networks use all the same, or a part of one; never the broadcast address alone. */
export function isUsableReserved(named: Cidr): boolean {
  return !isWithin(named, BROADCAST) && USABLE_RESERVED.some((reserved) => isWithin(named, reserved));
}

export function isBroadcast(address: Address): boolean {
  return cidrContains(BROADCAST, address);
}

function isWithin(inner: Cidr, outer: Cidr): boolean {
  const { family, bytes, prefix } = inner;
  return prefix >= outer.prefix && cidrContains(outer, { family, bytes, text: '' });
}

function hasHostBits(cidr: Cidr): boolean {
  return cidr.bytes.some((byte, i) => (byte & (0xff >> Math.min(8, Math.max(0, cidr.prefix - i * 8)))) !== 0);
}

// Configurations contain tens of thousands of addresses: no closure and no list for each group here.
function parseQuad(text: string): Uint8Array | undefined {
  if (!QUAD.test(text)) return undefined;
  const bytes = new Uint8Array(4);
  for (let i = 0, at = 0; i < 4; i += 1) {
    const dot = text.indexOf('.', at);
    const octet = Number(text.slice(at, dot < 0 ? undefined : dot));
    if (octet > 255) return undefined;
    bytes[i] = octet;
    at = dot + 1;
  }
  return bytes;
}

const QUAD = /^(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}$/;

/** The eight groups of an IPv6 address. */
function parseGroups(text: string): readonly number[] | undefined {
  const gap = text.indexOf('::');
  const head = toGroups(gap < 0 ? text : text.slice(0, gap), gap < 0);
  if (head === undefined || gap < 0) return head?.length === 8 ? head : undefined;
  const tail = toGroups(text.slice(gap + 2), true);
  // `::` replaces at least one group (RFC 4291 §2.2).
  if (tail === undefined || head.length + tail.length > 7) return undefined;
  while (head.length + tail.length < 8) head.push(0);
  head.push(...tail);
  return head;
}

function toGroups(text: string, mayEndInQuad: boolean): number[] | undefined {
  const groups: number[] = [];
  if (text === '') return groups;
  let [start, group] = [0, 0];
  for (let at = 0; at <= text.length; at += 1) {
    const code = text.charCodeAt(at);
    const digit = hexDigit(code);
    if (digit >= 0) {
      if (at - start >= 4) return undefined;
      group = group * 16 + digit;
    } else if (at > start && (code === COLON || at === text.length)) {
      groups.push(group);
      [start, group] = [at + 1, 0];
    } else {
      const quad = mayEndInQuad ? parseQuad(text.slice(start)) : undefined;
      return quad && [...groups, wordAt(quad, 0), wordAt(quad, 2)];
    }
  }
  return groups;
}

const COLON = 0x3a;

/** The value of a hexadecimal digit, or -1. */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const folded = code | 0x20;
  return folded >= 0x61 && folded <= 0x66 ? folded - 0x57 : -1;
}

function toBytes(groups: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(16);
  for (let i = 0; i < 16; i += 1) bytes[i] = (groups[i >> 1] ?? 0) >> (i % 2 === 0 ? 8 : 0);
  return bytes;
}

function formatV6(groups: readonly number[]): string {
  // RFC 5952 §5: a v4-mapped address is written with its dotted quad.
  if (groups[5] === 0xffff && !groups.slice(0, 5).some(Boolean))
    return `::ffff:${toBytes(groups).subarray(12).join('.')}`;
  // URL writes every other address as RFC 5952 requires.
  return new URL(`http://[${groups.map((group) => group.toString(16)).join(':')}]`).hostname.slice(1, -1);
}

function wordAt(bytes: Uint8Array, at: number): number {
  return (byteAt(bytes, at) << 8) | byteAt(bytes, at + 1);
}

function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

const range = (text: string): Cidr => {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new Error(`not a range of addresses: ${text}`);
  return cidr;
};

const GLOBAL_UNICAST = range('2000::/3');
const PROTOCOLS = range('2001::/23');

const BROADCAST = range('255.255.255.255');
// Benchmark networks, documentation, and the former class E.
const USABLE_RESERVED: readonly Cidr[] = [
  ...['198.18.0.0/15', '192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4'],
  ...['2001:db8::/32', '3fff::/20'],
].map(range);
const ALLOWABLE: ReadonlySet<AddressClass> = new Set(['loopback', 'private', 'cgnat', 'embedded_v4']);

// What no setting allows, the most dangerous first.
const NEVER: readonly AddressClass[] = ['metadata', 'link_local', 'multicast'];

// First match wins: the metadata services are inside wider ranges.
const SPECIAL: readonly (readonly [Cidr, AddressClass])[] = (
  [
    ['metadata', '169.254.169.254', 'fd00:ec2::/32', 'fd20:ce::254', '168.63.129.16', '100.100.100.200'],
    ['unspecified', '0.0.0.0/8', '::'],
    ['loopback', '127.0.0.0/8', '::1'],
    ['link_local', '169.254.0.0/16', 'fe80::/10'],
    ['private', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fec0::/10'],
    ['cgnat', '100.64.0.0/10'],
    ['multicast', '224.0.0.0/4', 'ff00::/8'],
    ['reserved', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15', '198.51.100.0/24'],
    ['reserved', '203.0.113.0/24', '240.0.0.0/4', '2001:db8::/32', '3fff::/20'],
  ] as const
).flatMap(([name, ...ranges]) => ranges.map((text) => [range(text), name] as const));

// The offsets of the four bytes; a negative offset means an inverted byte (Teredo obfuscates the client so). NAT64's
// local-use prefix (RFC 8215) may be split at /48, /56, /64 or /96 (RFC 6052 §2.2), so every layout counts.
const EMBEDDINGS: readonly (readonly [Cidr, readonly (readonly number[])[]])[] = [
  [range('::ffff:0:0/96'), [[12, 13, 14, 15]]],
  [range('::ffff:0:0:0/96'), [[12, 13, 14, 15]]],
  [range('::/96'), [[12, 13, 14, 15]]],
  [range('64:ff9b::/96'), [[12, 13, 14, 15]]],
  [
    range('64:ff9b:1::/48'),
    [
      [6, 7, 9, 10],
      [7, 9, 10, 11],
      [9, 10, 11, 12],
      [12, 13, 14, 15],
    ],
  ],
  [range('2002::/16'), [[2, 3, 4, 5]]],
  [
    range('2001::/32'),
    [
      [4, 5, 6, 7],
      [-12, -13, -14, -15],
    ],
  ],
];
