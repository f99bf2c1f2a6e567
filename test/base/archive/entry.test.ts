import { describe, expect, it } from 'vitest';
import { checkLinkTarget, parseEntryPath, refusal } from '../../../src/base/archive/entry.ts';

describe('the path of an entry', () => {
  it.each([
    ['./', ''],
    ['.', ''],
    ['usr/bin/', 'usr/bin'],
    ['./usr//bin/./env', 'usr/bin/env'],
    ['a\\..\\b', 'a\\..\\b'],
    ['...', '...'],
  ])('%s is %s', (path, parsed) => expect(parseEntryPath(path)).toBe(parsed));

  it.each([
    ['/etc/passwd', 'is absolute'],
    ['//etc', 'is absolute'],
    ['..', 'leads outside'],
    ['../etc', 'leads outside'],
    ['usr/../../etc', 'leads outside'],
    ['usr/..', 'leads outside'],
    ['a/./../b', 'leads outside'],
    ['a\0b', 'contains a NUL'],
    ['a'.repeat(256), 'name of more than 255 bytes'],
    ['a/'.repeat(129), 'more than 128 directories'],
    [`${'a'.repeat(250)}/`.repeat(17), 'more than 4095 bytes'],
  ])('%.40j is refused', (path, reason) => expect(() => parseEntryPath(path)).toThrow(reason));
});

describe('the target of a link', () => {
  it.each([
    ['bin', 'usr/bin'],
    ['etc/alternatives/awk', '/usr/bin/mawk'],
    ['usr/bin/awk', '../../etc/alternatives/awk'],
    ['a', '.'],
    ['a/b', '..'],
  ])('of %s may be %s', (path, target) => expect(() => checkLinkTarget(path, target)).not.toThrow());

  it.each([
    ['a', '..'],
    ['a', '../etc/passwd'],
    ['a/b', '../../etc'],
    ['a/b', 'c/../../../etc'],
    ['a', '/../etc'],
    ['a', '/usr/../../etc'],
  ])('of %s may not be %s', (path, target) => {
    expect(() => checkLinkTarget(path, target)).toThrow('leads outside');
  });

  it.each([
    ['empty', ''],
    ['with a NUL', 'a\0b'],
    ['too long', 'a/'.repeat(3000)],
  ])('may not be %s', (_, target) => {
    expect(() => checkLinkTarget('a', target)).toThrow('invalid target');
  });
});

describe('a refusal', () => {
  it('quotes the path without its control characters', () => {
    expect(refusal('a\u001b[2Jb\n', 'is bad').message).toBe('The entry "a\\u001b[2Jb\\n" is bad');
  });

  it('shortens it', () => expect(refusal('a'.repeat(5000), 'is bad').message.length).toBeLessThan(250));
});
