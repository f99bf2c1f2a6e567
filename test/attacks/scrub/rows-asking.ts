// H-10: clients that request a part of a response or a coding of it, so that it does not contain the secret in a searched
// form, and hosts that send such a response without a request for it.
import { SECRET } from '../../invariants/credential-scene.ts';
import { type Field, type ScrubRow, overBothVersions } from './scrub-script.ts';

const asked: readonly (readonly [string, readonly Field[]])[] = [
  ['range', [['Range', 'bytes=0-3']]],
  ['range-of-one-byte', [['Range', 'bytes=6-6']]],
  ['several-ranges', [['Range', 'bytes=0-3,4-7']]],
  ['range-in-capitals', [['RANGE', 'bytes=-4']]],
  [
    'range-twice',
    [
      ['Range', 'bytes=0-3'],
      ['range', 'bytes=4-7'],
    ],
  ],
  [
    'if-range',
    [
      ['If-Range', '"x"'],
      ['Range', 'bytes=1-'],
    ],
  ],
  ['if-range-spelled-for-cgi', [['If_Range', '"x"']]],
  ['gzip', [['Accept-Encoding', 'gzip']]],
  ['anything-but-identity', [['Accept-Encoding', 'br, *;q=1, identity;q=0']]],
  [
    'encoding-twice',
    [
      ['Accept-Encoding', 'identity'],
      ['accept-encoding', 'zstd'],
    ],
  ],
  ['encoding-spelled-for-cgi', [['Accept_Encoding', 'deflate']]],
  [
    'delta',
    [
      ['A-IM', 'vcdiff, gzip'],
      ['If-None-Match', '"x"'],
    ],
  ],
  ['grpc-messages', [['Grpc-Accept-Encoding', 'gzip']]],
];

const responded: readonly (readonly [string, number, readonly Field[]])[] = [
  ['unasked-gzip', 200, [['Content-Encoding', 'gzip']]],
  ['unasked-gzip-in-capitals', 200, [['CONTENT-ENCODING', 'GZIP']]],
  ['stacked', 200, [['Content-Encoding', 'identity, br']]],
  [
    'in-the-second-field',
    200,
    [
      ['Content-Encoding', 'identity'],
      ['Content-Encoding', 'zstd'],
    ],
  ],
  ['empty-and-gzip', 200, [['Content-Encoding', ', gzip']]],
  ['unheard-of', 200, [['Content-Encoding', 'rot13']]],
  ['identity-with-a-parameter', 200, [['Content-Encoding', 'identity;q=1']]],
  ['of-an-error', 503, [['Content-Encoding', 'gzip']]],
  ['of-grpc-messages', 200, [['Grpc-Encoding', 'gzip']]],
];

const honest: readonly (readonly [string, readonly Field[]])[] = [
  ['identity', [['Content-Encoding', 'identity']]],
  ['identity-in-capitals', [['Content-Encoding', 'Identity']]],
  ['empty', [['Content-Encoding', '']]],
  ['range-of-items', [['Content-Range', 'items 0-9/100']]],
];

const hidden = { body: '*'.repeat(SECRET.length), places: 1 };

export const askingRows: readonly ScrubRow[] = [
  ...asked.flatMap(([name, asks]) =>
    overBothVersions(`H-10 asked-for-${name}`, { asks, pieces: [SECRET] }, hidden),
  ),
  ...responded.flatMap(([name, status, fields]) =>
    overBothVersions(`H-10 encoded-${name}`, { status, fields, pieces: [SECRET] }, { refused: 'encoded' }),
  ),
  ...honest.flatMap(([name, fields]) =>
    overBothVersions(`H-10 not-encoded-${name}`, { fields, pieces: [SECRET] }, hidden),
  ),
  ...overBothVersions(
    'H-10 partial-unasked',
    { status: 206, fields: [['Content-Range', 'bytes 0-3/22']], pieces: [SECRET.slice(0, 4)] },
    { refused: 'partial' },
  ),
  ...overBothVersions(
    'H-10 several-parts-unasked',
    {
      status: 206,
      fields: [['Content-Type', 'multipart/byteranges; boundary=x']],
      pieces: ['--x\r\n\r\nse\r\n--x--'],
    },
    { refused: 'partial' },
  ),
  ...overBothVersions(
    'H-10 delta-unasked',
    { status: 226, fields: [['IM', 'vcdiff']], pieces: ['x'] },
    { refused: 'partial' },
  ),
  ...overBothVersions(
    'H-10 encoded-nominated',
    {
      fields: [
        ['Connection', 'content-encoding'],
        ['Content-Encoding', 'gzip'],
      ],
      pieces: [SECRET],
    },
    { refused: 'encoded' },
  ).filter(({ script }) => script.version === 'h1'),
  ...(['HEAD', 'GET'] as const).flatMap((method): ScrubRow[] => {
    const status = method === 'HEAD' ? 200 : 304;
    const fields: readonly Field[] = [['Content-Encoding', 'gzip']];
    const script = { method, status, fields, framing: 'length' as const, pieces: [] };
    return overBothVersions(`H-10 encoded-without-a-body-${status}`, script, { body: '' });
  }),
];
