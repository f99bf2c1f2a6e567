// The bytes of the ClientHellos of the stage `tls`: the content, and its split into records.
import {
  alpn as alpnOf,
  extension,
  helloBody,
  inRecords,
  message,
  serverName,
} from '../../tls/hello-bytes.ts';
import type { HelloParts, HelloShape } from './tls-script.ts';

// supported_groups, ec_point_formats, signature_algorithms: without them TLS 1.2 sends no P-256 certificate.
const usual: readonly (readonly [number, string])[] = [
  [10, '0004001d0017'],
  [11, '0100'],
  [13, '000604030804 0401'.replace(' ', '')],
];

export function helloBytes({ hello, records, before, within, after, instead }: HelloShape): Buffer {
  if (instead !== undefined) return hex(instead);
  const all = inRecords(message(bodyOf(hello)), records);
  const first = all.length < 5 ? all.length : 5 + all.readUInt16BE(3);
  return Buffer.concat([hex(before), all.subarray(0, first), hex(within), all.subarray(first), hex(after)]);
}

/** The same handshake bytes in records of at most `size`. */
export function cutRecords(bytes: Buffer, size: number): Buffer {
  const fragments: Buffer[] = [];
  for (let at = 0; at + 5 <= bytes.length; at += 5 + bytes.readUInt16BE(at + 3))
    fragments.push(bytes.subarray(at + 5, at + 5 + bytes.readUInt16BE(at + 3)));
  return inRecords(Buffer.concat(fragments), size);
}

function bodyOf(parts: HelloParts): Buffer {
  const {
    names = [],
    nameData,
    alpn,
    more = [],
    version,
    suites = 'c02bc02f',
    compressions,
    sessionId,
  } = parts;
  const named = names.map((name) => Buffer.from(name, 'latin1'));
  const extensions = [
    ...(nameData === undefined ? [] : [extension(0, hex(nameData))]),
    ...(named.length === 0 ? [] : [serverName(...named)]),
    ...(alpn === undefined ? [] : [alpnOf(...alpn)]),
    ...usual.map(([type, data]) => extension(type, hex(data))),
    ...more.map(([type, data]) => extension(type, typeof data === 'number' ? Buffer.alloc(data) : hex(data))),
  ];
  return helloBody({
    extensions: Buffer.concat(extensions),
    cipherSuites: hex(suites),
    ...(version === undefined ? {} : { version: hex(version) }),
    ...(compressions === undefined ? {} : { compressions: hex(compressions) }),
    ...(sessionId === undefined ? {} : { sessionId: hex(sessionId) }),
  });
}

function hex(text = ''): Buffer {
  return Buffer.from(text, 'hex');
}
