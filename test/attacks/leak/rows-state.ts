// L-09: sealed files that were changed, cut, exchanged, copied, joined, written by somebody else, or opened with another
// key. What is put back as it was opens: a documented limit (SECURITY.md).
import type { Damage, StateRow } from './leak-script.ts';

const refused = (name: string, refused: string, ...damage: readonly Damage[]): StateRow => ({
  id: `L-09 ${name}`,
  script: { damage },
  expect: { refused },
});
const a = 'a.sealed';
const b = 'b.sealed';
const SHUT = 'a.sealed cannot be decrypted';
const flip = (at: number): Damage => ({ act: 'flip', file: a, at });
const cut = (at: number): Damage => ({ act: 'cut', file: a, at });

export const stateRows: readonly StateRow[] = [
  refused('first-byte-of-the-nonce', SHUT, flip(16)),
  refused('last-byte-of-the-nonce', SHUT, flip(39)),
  refused('first-byte-of-the-text', SHUT, flip(40)),
  refused('last-byte-of-the-text', SHUT, flip(-17)),
  refused('first-byte-of-the-tag', SHUT, flip(-16)),
  refused('last-byte-of-the-tag', SHUT, flip(-1)),
  refused('first-byte-of-the-header', 'a.sealed is not sealed state', flip(0)),
  refused('version-of-the-format', 'a.sealed has the format of another version', flip(15)),
  refused('cut-in-the-header', 'a.sealed is truncated', cut(9)),
  refused('cut-behind-the-header', SHUT, cut(16)),
  refused('cut-in-the-nonce', SHUT, cut(30)),
  refused('cut-behind-the-nonce', SHUT, cut(40)),
  refused('cut-to-nonce-and-tag', SHUT, cut(56)),
  refused('cut-by-one-byte', SHUT, cut(-1)),
  refused('cut-to-nothing', 'a.sealed is truncated', cut(0)),
  refused('one-zero-behind', SHUT, { act: 'append', file: a, at: 1 }),
  refused('a-block-of-zeros-behind', SHUT, { act: 'append', file: a, at: 64 }),
  refused('exchanged-between-sandboxes', 'a.sealed cannot be decrypted, b.sealed cannot be decrypted', {
    act: 'swap',
    file: a,
    other: b,
  }),
  refused('copied-over-another', 'b.sealed cannot be decrypted', { act: 'copy', file: a, other: b }),
  refused('copied-to-a-new-name', 'c.sealed cannot be decrypted', {
    act: 'copy',
    file: a,
    other: 'c.sealed',
  }),
  refused('copied-over-the-default', 'default.sealed cannot be decrypted', {
    act: 'copy',
    file: a,
    other: 'default.sealed',
  }),
  refused('joined-with-another', SHUT, { act: 'join', file: a, other: b }),
  refused('joined-with-itself', SHUT, { act: 'join', file: a, other: a }),
  refused('plain-json', 'a.sealed is not sealed state', {
    act: 'write',
    file: a,
    hex: Buffer.from('{"proxy_config":{}}').toString('hex'),
  }),
  refused('header-and-plain-json', SHUT, {
    act: 'write',
    file: a,
    hex: Buffer.from('sallyport state\u0001{"proxy_config":{},"secrets":{},"token":null}').toString('hex'),
  }),
  refused('zeros', 'a.sealed is not sealed state', { act: 'write', file: a, hex: '00'.repeat(200) }),
  refused('a-file-of-another-kind', 'unknown files: notes.txt.', {
    act: 'copy',
    file: a,
    other: 'notes.txt',
  }),
  refused('a-name-that-is-no-sandbox', 'unknown files: A.sealed.', {
    act: 'copy',
    file: a,
    other: 'A.sealed',
  }),
  refused('another-key', 'THE_KEY is not the key that encrypted them', { act: 'key', hex: '11'.repeat(32) }),
  refused('a-key-of-zeros', 'THE_KEY is not the key that encrypted them', {
    act: 'key',
    hex: '00'.repeat(32),
  }),
  refused('half-a-key', 'THE_KEY: must be 32 random bytes', { act: 'key', hex: '22'.repeat(16) }),
  refused('a-passphrase', 'THE_KEY: must be 32 random bytes', {
    act: 'key',
    hex: 'correct horse battery staple',
  }),
  {
    id: 'L-09 put-back-as-it-was',
    script: { damage: [{ act: 'rollback', file: a }] },
    expect: { reads: { a: 'old state of a', b: 'state of b' } },
  },
  {
    id: 'L-09 changed-and-restored',
    script: { damage: [flip(50), flip(50)] },
    expect: { reads: { a: 'state of a', b: 'state of b' } },
  },
];
