// malformed chunks. The head has already been relayed, so that the client must detect an incomplete body.
import { cutWithin, relayed } from './row-shapes.ts';
import type { OriginRow } from './origin-script.ts';

const HEAD = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

/** After the head the client may read any part of `within`, but never the end of the body. */
const broken: readonly (readonly [name: string, body: string, cause: string])[] = [
  ['size-with-a-prefix', '0x2\r\nok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-after-a-space', ' 2\r\nok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-before-a-space', '2 \r\nok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-before-a-tab', '2\t\r\nok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-with-a-sign', '+2\r\nok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-negative', '-2\r\nok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-of-nothing', '\r\nok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-ends-in-lf', '2\nok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-ends-in-cr', '2\rok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-in-other-digits', '\xd9\xa2\r\nok\r\n0\r\n\r\n', 'chunk_size_malformed'],
  ['size-of-seventeen-digits', '00000000000000002\r\nok\r\n0\r\n\r\n', 'chunk_size_too_large'],
  ['size-of-two-to-the-64', '10000000000000002\r\nok\r\n0\r\n\r\n', 'chunk_size_too_large'],
  ['size-all-f', 'ffffffffffffffff\r\nok\r\n0\r\n\r\n', 'chunk_size_too_large'],
  ['data-longer-than-its-size', '2\r\noks\r\n0\r\n\r\n', 'chunk_end_missing'],
  ['data-shorter-than-its-size', '3\r\nok\r\n0\r\n\r\n', 'chunk_end_missing'],
  ['data-ends-in-lf', '2\r\nok\n0\r\n\r\n', 'chunk_end_missing'],
  ['data-ends-in-cr-cr', '2\r\nok\r\r\n0\r\n\r\n', 'chunk_end_missing'],
  ['data-ends-in-a-letter-and-lf', '2\r\nokx\n0\r\n\r\n', 'chunk_end_missing'],
  ['data-ends-in-cr-and-a-letter', '2\r\nok\rx0\r\n\r\n', 'chunk_end_missing'],
  ['data-without-an-end', '2\r\nok0\r\n\r\n', 'chunk_end_missing'],
  ['extension-with-a-bare-lf', '2;a\nok\r\n0\r\n\r\n', 'chunk_extension_malformed'],
  ['extension-with-a-nul', '2;a=\0\r\nok\r\n0\r\n\r\n', 'chunk_extension_malformed'],
  ['extension-with-an-open-quote', '2;a="\r\nok\r\n0\r\n\r\n', 'chunk_extension_malformed'],
  ['extension-with-a-space', '2;a = b\r\nok\r\n0\r\n\r\n', 'chunk_extension_malformed'],
  ['extension-without-a-name', '2;\r\nok\r\n0\r\n\r\n', 'chunk_extension_malformed'],
  ['extension-of-300-bytes', `2;a=${'b'.repeat(300)}\r\nok\r\n0\r\n\r\n`, 'chunk_extension_malformed'],
  ['trailer-with-a-length', '2\r\nok\r\n0\r\nContent-Length: 9\r\n\r\n', 'trailer_has_framing'],
  ['trailer-with-a-coding', '2\r\nok\r\n0\r\ntransfer_encoding: chunked\r\n\r\n', 'trailer_has_framing'],
  ['trailer-folded', '2\r\nok\r\n0\r\nX-A: one\r\n two\r\n\r\n', 'trailer_malformed'],
  ['trailer-with-a-bare-lf', '2\r\nok\r\n0\r\nX-A: one\nX-B: two\r\n\r\n', 'trailer_malformed'],
  ['trailer-without-a-colon', '2\r\nok\r\n0\r\nHTTP/1.1 200 OK\r\n\r\n', 'trailer_malformed'],
  ['trailers-that-never-end', `2\r\nok\r\n0\r\n${'X-A: one\r\n'.repeat(900)}`, 'trailer_too_large'],
];

const cutRows: readonly OriginRow[] = broken.map(([name, body, cause]) =>
  cutWithin(`R-02 chunk-${name}`, [{ send: HEAD + body }], `${HEAD}2\r\nok\r\n`, {
    reason: 'upstream_malformed',
    cause,
  }),
);

const canonical = `${HEAD}2\r\nok\r\n0\r\n\r\n`;

const rewritten: readonly OriginRow[] = [
  relayed('R-02 chunk-leading-zeros', `${HEAD}0002\r\nok\r\n000\r\n\r\n`, canonical),
  relayed('R-02 chunk-extension-dropped', `${HEAD}2;a=b;c="d\\"e"\r\nok\r\n0;last\r\n\r\n`, canonical),
  relayed('R-02 chunk-quoted-semicolons', `${HEAD}2;a=";;;"\r\nok\r\n0\r\n\r\n`, canonical),
  relayed(
    'R-02 chunk-trailers-dropped',
    `${HEAD}2\r\nok\r\n0\r\nSet-Cookie: a=b\r\nX-A: one\r\n\r\n`,
    canonical,
  ),
  relayed('R-02 chunk-size-in-capitals', `${HEAD}A\r\n0123456789\r\n0\r\n\r\n`),
  relayed('R-02 chunk-that-looks-like-the-last', `${HEAD}7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n`),
  relayed('R-02 chunks-byte-by-byte', canonical, `${HEAD}2\r\nok\r\n0\r\n\r\n`, {
    script: { response: [{ drip: `${HEAD}2;x\r\nok\r\n0\r\nX-A: one\r\n\r\n` }] },
  }),
  relayed('R-02 chunk-of-none-but-the-last', `${HEAD}0\r\n\r\n`),
];

export const chunkRows: readonly OriginRow[] = [...cutRows, ...rewritten];
