// What a CONNECT names: userinfo, dots and case, Unicode, NUL, ports, IPv6, and targets that are not an authority (D-09 to
// D-15). The tables of hosts and ports are own rows, modelled on stripe/smokescreen (pkg/smokescreen/hostport, MIT): what it
// reads leniently is refused here, because another hop may read it differently.
import type { ConnectExpectation, ConnectRow } from './connect-script.ts';
import { get, head, refused, utf8 } from './expectations.ts';

type Line = readonly [name: string, target: string, cause?: string];

const MALFORMED = '400 malformed_request';
const INVALID = '400 authority_invalid';

function table(id: string, response: string, lines: readonly Line[]): readonly ConnectRow[] {
  return lines.map(([name, target, cause]) => ({
    id: `${id} ${name}`,
    script: { send: [head(`CONNECT ${target} HTTP/1.1`, 'Host: api.test:443')] },
    expect: refused(response, cause === undefined ? {} : { cause }),
  }));
}

/** The same attack as absolute-form on the proxy port. */
function plain(
  id: string,
  lines: readonly (readonly [name: string, target: string, expect: ConnectExpectation])[],
): readonly ConnectRow[] {
  return lines.map(([name, target, expect]) => ({
    id: `${id} plain-${name}`,
    script: { send: [get('clear.test').replace('/v1/x', target)] },
    expect,
  }));
}

const userinfo = [
  ...table('D-09', INVALID, [
    ['user', 'u@api.test:443', 'userinfo'],
    ['user-and-password', 'u:p@api.test:443', 'userinfo'],
    ['empty-user', '@api.test:443', 'userinfo'],
    ['bound-host-as-user', 'api.test@evil.test:443', 'userinfo'],
    ['bound-authority-as-user', 'api.test:443@evil.test:443', 'userinfo'],
    ['other-host-as-user', 'evil.test:443@api.test:443', 'userinfo'],
    ['two-at-signs', 'a@b@api.test:443', 'userinfo'],
    ['escaped-at-sign', 'api.test%40evil.test:443', 'character_invalid'],
    ['user-before-an-address', 'api.test@[2606:4700::1111]:443', 'userinfo'],
    ['at-sign-in-brackets', '[api.test@::1]:443', 'userinfo'],
    ['at-sign-in-the-port', 'api.test:443@80', 'userinfo'],
  ]),
  ...plain('D-09', [
    ['listed-host-as-user', 'http://clear.test@evil.test/', refused(INVALID, { cause: 'userinfo' })],
    [
      'listed-authority-as-user',
      'http://clear.test:80@evil.test:80/',
      refused(INVALID, { cause: 'userinfo' }),
    ],
    ['user-before-the-listed-host', 'http://u:p@clear.test/', refused(INVALID, { cause: 'userinfo' })],
    ['empty-userinfo', 'http://@clear.test/', refused(INVALID, { cause: 'userinfo' })],
    [
      'backslash-before-the-at-sign',
      'http://evil.test\\@clear.test/',
      refused(INVALID, { cause: 'userinfo' }),
    ],
  ]),
];

const dots = table('D-10', INVALID, [
  ['two-trailing-dots', 'api.test..:443', 'label_invalid'],
  ['leading-dot', '.api.test:443', 'label_invalid'],
  ['empty-label', 'api..test:443', 'label_invalid'],
  ['dot-alone', '.:443', 'label_invalid'],
  ['two-dots-alone', '..:443', 'label_invalid'],
  ['dot-after-the-port', 'api.test:443.', 'port_invalid'],
  ['dot-after-an-address', '8.8.1.9.:443', 'ipv4_invalid'],
  ['escaped-dot', 'api%2etest:443', 'character_invalid'],
  ['label-that-ends-in-a-hyphen', 'api-.test:443', 'label_invalid'],
  ['label-that-begins-with-a-hyphen', '-api.test:443', 'label_invalid'],
  ['label-of-64', `${'a'.repeat(64)}.test:443`, 'label_invalid'],
  ['name-of-254', `${'a.'.repeat(125)}test:443`, 'too_long'],
]);

const unicode = [
  ...table('D-11', MALFORMED, [
    ['ideographic-full-stop', utf8('api。test:443')],
    ['fullwidth-full-stop', utf8('api．test:443')],
    ['halfwidth-full-stop', utf8('api｡test:443')],
    ['fullwidth-letters', utf8('ａｐｉ.test:443')],
    ['cyrillic-a', utf8('аpi.test:443')],
    ['long-s-that-folds-to-s', utf8('api.teſt:443')],
    ['dotless-i', utf8('apı.test:443')],
    ['capital-i-with-dot', utf8('APİ.test:443')],
    ['soft-hyphen', utf8('api\u00ad.test:443')],
    ['zero-width-joiner', utf8('api\u200d.test:443')],
    ['byte-order-mark', utf8('\ufeffapi.test:443')],
    ['right-to-left-override', utf8('\u202etset.ipa:443')],
    ['u-label-of-a-bound-host', utf8('bücher.test:443')],
    ['the-same-in-latin1', 'b\xfccher.test:443'],
    ['decomposed', utf8('bu\u0308cher.test:443')],
    ['circled-digits-as-an-address', utf8('⑧.⑧.①.⑨:443')],
    ['cut-utf-8', 'api\xe3\x80.test:443'],
    ['no-break-space', 'api.test\xa0:443'],
  ]),
  ...table('D-11', INVALID, [
    ['escaped-u-label', 'b%C3%BCcher.test:443', 'character_invalid'],
    ['escaped-ideographic-full-stop', 'api%E3%80%82test:443', 'character_invalid'],
    ['a-label-of-nothing', 'xn--.test:443', 'label_invalid'],
    // A lenient decoder reads it as `api.test`.
    ['a-label-of-ascii', 'xn--api-.test:443', 'label_invalid'],
  ]),
];

const nul = [
  ...table('D-12', MALFORMED, [
    ['before-the-bound-name', 'evil.test\0.api.test:443'],
    ['after-the-bound-name', 'api.test\0.evil.test:443'],
    ['before-the-colon', 'api.test\0:443'],
    ['in-the-port', 'api.test:44\x003'],
    ['after-the-port', 'api.test:443\0'],
    ['at-the-start', '\0api.test:443'],
    ['overlong', 'evil.test\xc0\x80.api.test:443'],
    ['in-brackets', '[::1\0]:443'],
    ['delete-instead', 'evil.test\x7f.api.test:443'],
    ['escape-character-instead', 'evil.test\x1b.api.test:443'],
    ['tab-instead', 'evil.test\t.api.test:443'],
  ]),
  ...table('D-12', INVALID, [
    ['escaped', 'evil.test%00.api.test:443', 'character_invalid'],
    ['escaped-after', 'api.test%00:443', 'character_invalid'],
    ['escaped-twice', 'evil.test%2500.api.test:443', 'character_invalid'],
    ['escaped-line-break', 'evil.test%0d%0a.api.test:443', 'character_invalid'],
    ['written-out', 'evil.test\\0.api.test:443', 'trailing_junk'],
  ]),
];

const ports = [
  ...table('D-13', INVALID, [
    ['none', 'api.test', 'port_missing'],
    ['none-on-an-address', '8.8.1.9', 'port_missing'],
    ['none-on-ipv6', '[2606:4700::1111]', 'port_missing'],
    ['empty', 'api.test:', 'port_invalid'],
    ['empty-on-ipv6', '[2606:4700::1111]:', 'port_invalid'],
    ['zero', 'api.test:0', 'port_invalid'],
    ['leading-zero', 'api.test:0443', 'port_invalid'],
    ['many-leading-zeros', 'api.test:0000000443', 'port_invalid'],
    ['one-too-many', 'api.test:65536', 'port_invalid'],
    ['443-and-two-to-the-16', 'api.test:65979', 'port_invalid'],
    ['443-and-two-to-the-32', 'api.test:4294967739', 'port_invalid'],
    ['443-and-two-to-the-64', 'api.test:18446744073709552059', 'port_invalid'],
    ['twice', 'api.test:443:443', 'port_invalid'],
    ['two-of-them', 'api.test:443:8443', 'port_invalid'],
    ['plus', 'api.test:+443', 'character_invalid'],
    ['minus', 'api.test:-443', 'port_invalid'],
    ['service-name', 'api.test:https', 'port_invalid'],
    ['hexadecimal', 'api.test:0x1bb', 'port_invalid'],
    ['octal', 'api.test:0o673', 'port_invalid'],
    ['exponent', 'api.test:443e0', 'port_invalid'],
    ['fraction', 'api.test:443.0', 'port_invalid'],
    ['underscore', 'api.test:4_43', 'port_invalid'],
    ['letter-after', 'api.test:443a', 'port_invalid'],
    ['escaped-digits', 'api.test:%34%34%33', 'character_invalid'],
    ['escaped-space-after', 'api.test:443%20', 'character_invalid'],
    ['list', 'api.test:443,8443', 'character_invalid'],
    ['range', 'api.test:443-444', 'port_invalid'],
    ['alone', ':443', 'empty'],
    ['colon-alone', ':', 'empty'],
    ['no-host', '443', 'ipv4_invalid'],
    ['leading-zero-on-ipv6', '[2606:4700::1111]:007', 'port_invalid'],
    ['minus-on-ipv6', '[2606:4700::1111]:-12', 'port_invalid'],
    ['too-great-on-ipv6', '[2606:4700::1111]:91337', 'port_invalid'],
    ['service-on-ipv6', '[2606:4700::1111]:https', 'port_invalid'],
  ]),
  ...table('D-13', MALFORMED, [
    ['fullwidth-digits', utf8('api.test:４４３')],
    ['arabic-digits', utf8('api.test:٤٤٣')],
    ['superscript-digits', utf8('api.test:⁴⁴³')],
    ['space-inside', 'api.test:4 43'],
    ['space-before', 'api.test: 443'],
    ['vertical-tab-after', 'api.test:443\v'],
  ]),
];

const ipv6 = [
  ...table('D-14', INVALID, [
    ['unbracketed', '2606:4700::1111:443', 'ipv6_unbracketed'],
    ['loopback-unbracketed', '::1:443', 'ipv6_unbracketed'],
    ['unspecified-unbracketed', '::', 'ipv6_unbracketed'],
    ['unbracketed-without-port', '2001:DB8::1337', 'ipv6_unbracketed'],
    ['bracket-not-closed', '[2606:4700::1111:443', 'ipv6_invalid'],
    ['bracket-not-opened', '2606:4700::1111]:443'],
    ['two-brackets', '[[2606:4700::1111]]:443'],
    ['empty-brackets', '[]:443', 'ipv6_invalid'],
    ['name-in-brackets', '[api.test]:443', 'ipv6_invalid'],
    ['name-with-dot-in-brackets', '[api.test.]:443', 'ipv6_invalid'],
    ['ipv4-in-brackets', '[8.8.1.9]:443', 'ipv6_invalid'],
    ['zone', '[fe80::1%25eth0]:443', 'character_invalid'],
    ['zone-without-escape', '[fe80::1%eth0]:443', 'character_invalid'],
    ['zone-on-a-bound-address', '[2606:4700::1111%251]:443', 'character_invalid'],
    ['ip-future', '[v1.2606:4700::1111]:443', 'ipv6_invalid'],
    ['two-gaps', '[2606::4700::1111]:443', 'ipv6_invalid'],
    ['three-colons', '[2606:4700:::1111]:443', 'ipv6_invalid'],
    ['nine-groups', '[1:2:3:4:5:6:7:8:9]:443', 'ipv6_invalid'],
    ['seven-groups', '[1:2:3:4:5:6:7]:443', 'ipv6_invalid'],
    ['gap-of-nothing', '[1:2:3:4::5:6:7:8]:443', 'ipv6_invalid'],
    ['group-of-five-digits', '[2606:04700::1111]:443', 'ipv6_invalid'],
    ['group-with-prefix', '[2606:0x4700::1111]:443', 'ipv6_invalid'],
    ['quad-out-of-range', '[::ffff:8.8.1.256]:443', 'ipv6_invalid'],
    ['quad-with-leading-zero', '[::ffff:08.8.1.9]:443', 'ipv6_invalid'],
    ['quad-of-three', '[::ffff:8.8.1]:443', 'ipv6_invalid'],
    ['quad-in-the-middle', '[::8.8.1.9:1]:443', 'ipv6_invalid'],
    ['prefix-length', '[2606:4700::1111/128]:443', 'trailing_junk'],
    ['no-colon-after', '[2606:4700::1111]443', 'trailing_junk'],
    ['name-after', '[2606:4700::1111].api.test:443', 'trailing_junk'],
    ['name-before', 'api.test[2606:4700::1111]:443'],
    ['leading-colon', '[:2606:4700::1111]:443', 'ipv6_invalid'],
    ['trailing-colon', '[2606:4700::1111:]:443', 'ipv6_invalid'],
  ]),
  ...table('D-14', MALFORMED, [['space-in-brackets', '[ 2606:4700::1111]:443']]),
];

const notAnAuthority = [
  ...table('D-15', INVALID, [
    ['http-url', 'http://api.test:443/', 'trailing_junk'],
    ['https-url', 'https://api.test:443', 'trailing_junk'],
    ['url-without-slashes', 'https:api.test:443', 'port_invalid'],
    ['path', 'api.test:443/v1/x', 'trailing_junk'],
    ['slash', 'api.test:443/', 'trailing_junk'],
    ['query', 'api.test:443?x', 'trailing_junk'],
    ['path-before-the-port', 'api.test/:443', 'trailing_junk'],
    ['network-path', '//api.test:443', 'trailing_junk'],
    ['origin-form', '/v1/x', 'trailing_junk'],
    ['asterisk', '*', 'character_invalid'],
    ['wildcard', '*.wild.test:443', 'character_invalid'],
    ['backslash', 'api.test\\:443', 'trailing_junk'],
    ['unc', '\\\\api.test:443', 'trailing_junk'],
    ['unix-socket', 'unix:/run/admin.sock', 'trailing_junk'],
    ['list', 'api.test:443,evil.test:443', 'character_invalid'],
    ['parameter', 'api.test:443;evil.test', 'character_invalid'],
    ['shell', '$(api.test):443', 'character_invalid'],
    ['exclamation', '!evil.test:443', 'character_invalid'],
    ['tilde', 'api.test~:443', 'character_invalid'],
  ]),
  ...table('D-15', MALFORMED, [
    ['two-spaces', ' api.test:443'],
    ['angle-brackets', '<api.test>:443'],
    ['quotes', '"api.test":443'],
    ['fragment', 'api.test:443#x'],
    ['two-authorities', 'api.test:443 evil.test:443'],
    ['nothing', ''],
    ['line-feed', 'api.test\n:443'],
    ['carriage-return', 'api.test\r:443'],
  ]),
  ...(
    [
      ['connect', '405 method_refused'],
      ['Connect', '405 method_refused'],
      ['CONNECTX', '400 target_invalid'],
    ] as const
  ).map(([method, response]): ConnectRow => {
    // Methods are case-sensitive (RFC 9110 §9.1): this is not a CONNECT, and must not become one at the next hop.
    const send = [head(`${method} api.test:443 HTTP/1.1`, 'Host: api.test:443')];
    return { id: `D-15 method-${method}`, script: { send }, expect: refused(response) };
  }),
];

export const authorityRows: readonly ConnectRow[] = [
  ...userinfo,
  ...dots,
  ...unicode,
  ...nul,
  ...ports,
  ...ipv6,
  ...notAnAuthority,
];
