// One spelling for every destination: what is read, how it is written, and what is refused.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatAuthority, parseAuthority, parseHost } from '../../../src/policy/authority/authority.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { runs } from '../../support/run-size.ts';

const label63 = 'a'.repeat(63);
const name253 = `${label63}.${label63}.${label63}.${'b'.repeat(61)}`;

describe('an authority is read as', () => {
  const rows: readonly [text: string, host: string, port: number, kind: string, written: string][] = [
    ['good.test:443', 'good.test', 443, 'name', 'good.test:443'],
    ['GOOD.Test.:443', 'good.test', 443, 'name', 'good.test:443'],
    ['good.test:1', 'good.test', 1, 'name', 'good.test:1'],
    ['good.test:65535', 'good.test', 65_535, 'name', 'good.test:65535'],
    ['localhost:80', 'localhost', 80, 'name', 'localhost:80'],
    ['_dmarc.good_test.x:443', '_dmarc.good_test.x', 443, 'name', '_dmarc.good_test.x:443'],
    ['r3---sn-4g5.cdn.test:443', 'r3---sn-4g5.cdn.test', 443, 'name', 'r3---sn-4g5.cdn.test:443'],
    ['XN--Bcher-KVA.example:443', 'xn--bcher-kva.example', 443, 'name', 'xn--bcher-kva.example:443'],
    ['1password.com:443', '1password.com', 443, 'name', '1password.com:443'],
    ['4.good.test:443', '4.good.test', 443, 'name', '4.good.test:443'],
    ['good.x1:443', 'good.x1', 443, 'name', 'good.x1:443'],
    ['good.1x:443', 'good.1x', 443, 'name', 'good.1x:443'],
    ['good.x0x7f:443', 'good.x0x7f', 443, 'name', 'good.x0x7f:443'],
    [`${name253}.:65535`, name253, 65_535, 'name', `${name253}:65535`],
    [`${name253}:443`, name253, 443, 'name', `${name253}:443`],
    ['192.0.2.7:443', '192.0.2.7', 443, 'ipv4', '192.0.2.7:443'],
    ['[::1]:443', '::1', 443, 'ipv6', '[::1]:443'],
    ['[2001:DB8:0:0:0:0:0:7]:8443', '2001:db8::7', 8443, 'ipv6', '[2001:db8::7]:8443'],
    ['[::ffff:102:304]:443', '::ffff:1.2.3.4', 443, 'ipv6', '[::ffff:1.2.3.4]:443'],
  ];
  it.each(rows)('%s', (text, host, port, kind, written) => {
    expect(parseAuthority(text)).toEqual({ host, port, kind, text: written });
  });
});

describe('an authority is rejected:', () => {
  const rows: readonly [name: string, text: string, error: string][] = [
    ['nothing at all', '', 'empty'],
    ['a port alone', ':443', 'empty'],
    ['userinfo', 'u@good.test:443', 'userinfo'],
    ['userinfo that looks like the host', 'good.test:443@evil.test:443', 'userinfo'],
    ['no port', 'good.test', 'port_missing'],
    ['no port behind brackets', '[::1]', 'port_missing'],
    ['an empty port', 'good.test:', 'port_invalid'],
    ['port zero', 'good.test:0', 'port_invalid'],
    ['a leading zero', 'good.test:0443', 'port_invalid'],
    ['a port out of range', 'good.test:65536', 'port_invalid'],
    ['a long port', 'good.test:99999', 'port_invalid'],
    ['a signed port', 'good.test:+443', 'character_invalid'],
    ['a negative port', 'good.test:-443', 'port_invalid'],
    ['a named port', 'good.test:https', 'port_invalid'],
    ['two ports', 'good.test:443:443', 'port_invalid'],
    ['a scheme', 'http://good.test:443/', 'trailing_junk'],
    ['a path', 'good.test:443/x', 'trailing_junk'],
    ['a query', 'good.test:443?x', 'trailing_junk'],
    ['a fragment', 'good.test:443#x', 'trailing_junk'],
    ['a backslash', 'good.test\\@evil.test:443', 'userinfo'],
    ['a backslash alone', 'good.test\\evil.test:443', 'trailing_junk'],
    ['two trailing dots', 'good.test..:443', 'label_invalid'],
    ['an empty label', 'good..test:443', 'label_invalid'],
    ['a leading dot', '.good.test:443', 'label_invalid'],
    ['a dot alone', '.:443', 'label_invalid'],
    ['a hyphen at the start of a label', '-good.test:443', 'label_invalid'],
    ['a hyphen at the end of a label', 'good-.test:443', 'label_invalid'],
    ['a label of 64', `${'a'.repeat(64)}.test:443`, 'label_invalid'],
    ['a name of 254', `${name253}b:443`, 'too_long'],
    ['a text of 9 KiB', `${'a.'.repeat(4500)}:443`, 'too_long'],
    ['an address of 9 KiB', `[${'0'.repeat(9000)}]:443`, 'too_long'],
    ['an address as long as a name may be', `[${'0'.repeat(255)}]:443`, 'ipv6_invalid'],
    ['NUL', 'evil.test\0.good.test:443', 'character_invalid'],
    ['an escape', 'evil.test%00.good.test:443', 'character_invalid'],
    ['a line break', 'good.test\r\n:443', 'character_invalid'],
    ['a space', 'good.test :443', 'character_invalid'],
    ['a tab', 'good.test\t:443', 'character_invalid'],
    ['a list', 'a.test,b.test:443', 'character_invalid'],
    ['a star', '*.good.test:443', 'character_invalid'],
    ['a full stop of another script', 'good。test:443', 'character_invalid'],
    ['the same in raw bytes', 'good\xe3\x80\x82test:443', 'character_invalid'],
    ['full-width letters', 'ｇｏｏｄ.test:443', 'character_invalid'],
    ['a short IPv4 address', '127.1:443', 'ipv4_invalid'],
    ['a decimal IPv4 address', '2130706433:443', 'ipv4_invalid'],
    ['a hexadecimal IPv4 address', '0x7f.1:443', 'ipv4_invalid'],
    ['a hexadecimal IPv4 address with a dot', '0x7f.1.:443', 'ipv4_invalid'],
    ['an octal IPv4 address', '0251.0376.0251.0376:443', 'ipv4_invalid'],
    ['a long octal IPv4 address', '017700000001:443', 'ipv4_invalid'],
    ['zero', '0:443', 'ipv4_invalid'],
    ['three numbers', '169.254.43518:443', 'ipv4_invalid'],
    ['five numbers', '1.2.3.4.5:443', 'ipv4_invalid'],
    ['an octet over 255', '1.2.3.256:443', 'ipv4_invalid'],
    ['a name that ends in a number', 'good.test.1:443', 'ipv4_invalid'],
    ['an IPv4 address with a trailing dot', '127.0.0.1.:443', 'ipv4_invalid'],
    ['circled digits', '①②⑦.⓪.⓪.①:443', 'character_invalid'],
    ['IPv6 without brackets', '::1:443', 'ipv6_unbracketed'],
    ['full IPv6 without brackets', '2001:db8:0:0:0:0:0:7:443', 'ipv6_unbracketed'],
    ['a zone', '[fe80::1%25lo]:443', 'character_invalid'],
    ['a zone with a bare percent sign', '[fe80::1%lo]:443', 'character_invalid'],
    ['a version of the future', '[v1.a]:443', 'ipv6_invalid'],
    ['IPv4 in brackets', '[127.0.0.1]:443', 'ipv6_invalid'],
    ['a name in brackets', '[good.test]:443', 'ipv6_invalid'],
    ['an open bracket', '[::1:443', 'ipv6_invalid'],
    ['text behind the bracket', '[::1]x:443', 'trailing_junk'],
    ['two brackets', '[[::1]]:443', 'trailing_junk'],
    ['brackets behind a name', 'a[::1]:443', 'port_invalid'],
    ['an empty bracket', '[]:443', 'ipv6_invalid'],
  ];
  it.each(rows)('%s', (_name, text, error) => {
    expect(parseAuthority(text)).toBe(error);
  });
});

describe('the port', () => {
  it('may be omitted where there is a default', () => {
    expect(parseAuthority('good.test', 443)).toMatchObject({ port: 443, text: 'good.test:443' });
    expect(parseAuthority('[::1]', 80)).toMatchObject({ port: 80, text: '[::1]:80' });
  });
  it('is omitted in writing if none is given', () => {
    expect(formatAuthority({ host: 'good.test', kind: 'name' }, undefined)).toBe('good.test');
    expect(formatAuthority({ host: '::1', kind: 'ipv6' }, undefined)).toBe('[::1]');
    expect(formatAuthority({ host: 'good.test', kind: 'name' }, 8443)).toBe('good.test:8443');
  });
});

describe('whatever the text,', () => {
  // Letters that make authorities, and those that break them.
  const texts = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.string({ unit: fc.constantFrom(...'aA0.:[]-_x@/%f1 ') }),
    fc.tuple(fc.domain(), fc.nat(70_000)).map(([host, port]) => `${host}:${port}`),
    fc.tuple(fc.ipV6(), fc.nat(70_000)).map(([host, port]) => `[${host}]:${port}`),
    fc.tuple(fc.ipV4Extended(), fc.nat(70_000)).map(([host, port]) => `${host}:${port}`),
  );
  it('reading what was written gives the same again', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const first = parseAuthority(text);
        if (typeof first === 'string') return;
        expect(parseAuthority(first.text)).toEqual(first);
        expect(formatAuthority(first, first.port)).toBe(first.text);
      }),
      { numRuns: runs(5000) },
    );
  });
  it('the URL parser reads the same host', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const ours = parseAuthority(text);
        if (typeof ours === 'string') return;
        const url = new URL(`http://${ours.text}`);
        const host = parseHost(url.hostname);
        expect(typeof host === 'string' ? host : host.host).toBe(ours.host);
        expect(Number(url.port || 80)).toBe(ours.port);
      }),
      { numRuns: runs(5000) },
    );
  });
});
