import { describe, expect, it } from 'vitest';
import { TarFrames } from '../../../src/base/archive/tar-frames.ts';
import { archive, paxEntry, withField } from '../../support/archive-bytes.ts';

function check(bytes: Uint8Array, pieceSize: number): void {
  const frames = new TarFrames();
  for (let at = 0; at < bytes.length; at += pieceSize) frames.write(bytes.subarray(at, at + pieceSize));
  frames.end();
}

const file = { name: 'a', content: 'x'.repeat(700) };
const SIZE = 124;

describe.each([1, 511, 512, 100_000])('in pieces of %d bytes', (pieceSize) => {
  it.each([
    ['files', archive([file, { name: 'b' }])],
    [
      'directories and links',
      archive([
        { name: 'd/', type: '5' },
        { name: 'l', type: '2', target: 'a' },
      ]),
    ],
    ['an old directory', archive([{ name: 'd/' }])],
    ['a long name', archive([{ name: 'L', type: 'L', content: 'n'.repeat(300) }, file])],
    ['records, among them the size', archive([paxEntry({ path: 'é'.repeat(90), size: '700' }), file])],
    [
      'records that say another size than the head',
      archive([paxEntry({ size: '700' }), { ...file, size: 0 }]),
    ],
    ['a size in binary', withField(archive([file]), SIZE, '\x80\0\0\0\0\0\0\0\0\0\x02\xbc')],
    ['a size after spaces', withField(archive([file]), SIZE, '       1274 ')],
    ['more zeros at the end', Buffer.concat([archive([file]), Buffer.alloc(10_240)])],
  ])('a tar with %s passes', (_, bytes) => expect(() => check(bytes, pieceSize)).not.toThrow());

  it.each([
    ['text', Buffer.from('hello'.repeat(200)), 'a head has another checksum'],
    ['nothing', Buffer.alloc(0), 'it has no end'],
    ['a tar that is cut in a head', archive([file]).subarray(0, 100), 'it ends within an entry'],
    ['a tar that is cut in a file', archive([file]).subarray(0, 1000), 'it ends within an entry'],
    ['a tar that is cut in the padding', archive([file]).subarray(0, 1300), 'it ends within an entry'],
    ['a tar that is cut behind a file', archive([file]).subarray(0, 1536), 'it has no end'],
    ['two archives', Buffer.concat([archive([file]), archive([file])]), 'something follows its end'],
    [
      'an entry after one block of zeros',
      Buffer.concat([Buffer.alloc(512), archive([file])]),
      'follows its end',
    ],
    ['a negative size', withField(archive([file]), SIZE, '\xff'.repeat(12)), 'size of an entry is not valid'],
    [
      'a huge size',
      withField(archive([file]), SIZE, `\x80${'\xff'.repeat(11)}`),
      'size of an entry is not valid',
    ],
    [
      'a size in other digits',
      withField(archive([file]), SIZE, '00000000998\0'),
      'size of an entry is not valid',
    ],
    [
      'a size before other text',
      withField(archive([file]), SIZE, '0000700\0abcd'),
      'size of an entry is not valid',
    ],
    [
      'a size of PAX that is no number',
      archive([paxEntry({ size: 'x' }), file]),
      'size of an entry is not valid',
    ],
    ['a negative size of PAX', archive([paxEntry({ size: '-5' }), file]), 'size of an entry is not valid'],
    ['an empty size of PAX', archive([paxEntry({ size: '' }), file]), 'size of an entry is not valid'],
    [
      'a size of PAX for all entries',
      archive([{ ...paxEntry({ size: '700' }), type: 'g' }, file]),
      'size of an entry is not valid',
    ],
    [
      'a directory with content',
      archive([{ name: 'd', type: '5', content: 'x' }]),
      'that is no file has content',
    ],
    ['an old directory with content', archive([{ name: 'd/', content: 'x' }]), 'that is no file has content'],
    [
      'a hard link with content',
      archive([{ name: 'l', type: '1', content: 'x' }]),
      'that is no file has content',
    ],
    [
      'records without a length',
      archive([{ name: 'p', type: 'x', content: 'path=a\n' }, file]),
      'records of a head',
    ],
    [
      'records that are longer',
      archive([{ name: 'p', type: 'x', content: '99 path=a\n' }, file]),
      'records of a head',
    ],
    [
      'records that overlap',
      archive([{ name: 'p', type: 'x', content: '5 path=a\n' }, file]),
      'records of a head',
    ],
    [
      'records of length 0',
      archive([{ name: 'p', type: 'x', content: '0 path=a\n' }, file]),
      'records of a head',
    ],
    [
      'a record without a key',
      archive([{ name: 'p', type: 'x', content: '5 =a\n' }, file]),
      'records of a head',
    ],
    ['a sparse file of PAX', archive([paxEntry({ 'GNU.sparse.major': '1' }), file]), 'has a sparse file'],
    [
      'a long name of 2 MiB',
      archive([{ name: 'L', type: 'L', content: 'n'.repeat(2 ** 21) }]),
      'more than 1048576 bytes',
    ],
    ['a name of no end', archive([{ name: 'L', type: 'L', size: 7 * 2 ** 30 }]), 'more than 1048576 bytes'],
  ])('%s is refused', (_, bytes, reason) => expect(() => check(bytes, pieceSize)).toThrow(reason));
});
