import { describe, expect, it } from 'vitest';
import { BodyError } from '../../../src/base/http/body-error.ts';
import { readBoundary, readPartHeader } from '../../../src/base/http/multipart-header.ts';

function kindOr<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof BodyError) return error.kind;
    throw error;
  }
}

describe('the boundary', () => {
  it.each([
    ['multipart/form-data; boundary=abc', 'abc'],
    ['Multipart/Form-Data;charset=utf-8; Boundary="a b:c"', 'a b:c'],
    [`multipart/form-data; boundary=${'a'.repeat(70)}`, 'a'.repeat(70)],
    [undefined, 'content_type'],
    ['application/json', 'content_type'],
    ['multipart/mixed; boundary=abc', 'content_type'],
    ['multipart/form-data', 'malformed_multipart'],
    ['multipart/form-data; boundary=', 'malformed_multipart'],
    ['multipart/form-data; boundary="a "', 'malformed_multipart'],
    ['multipart/form-data; boundary=a; boundary=b', 'malformed_multipart'],
    ['multipart/form-data; boundary=a, multipart/form-data; boundary=b', 'malformed_multipart'],
    [`multipart/form-data; boundary=${'a'.repeat(71)}`, 'malformed_multipart'],
  ])('of %j is %j', (type, expected) => expect(kindOr(() => readBoundary(type))).toBe(expected));
});

describe('the header of a part', () => {
  const LIMITS = { headerBytes: 200, nameChars: 20 };
  const read = (disposition: string, more: Readonly<Record<string, readonly string[]>> = {}) =>
    kindOr(() => readPartHeader({ 'content-disposition': [disposition], ...more }, LIMITS));

  it.each([
    ['form-data; name="post.1.inputs"', { name: 'post.1.inputs', fileName: undefined }],
    ['Form-Data;Name=a ; FileName="b; c=\\"d\\\\.txt"', { name: 'a', fileName: 'b; c="d\\.txt' }],
    ['form-data; name="C:\\temp"', { name: 'C:\\temp' }],
    ['form-data; name=""', { name: '' }],
    [Buffer.from('form-data; name="ä"').toString('latin1'), { name: 'ä' }],
    ['form-data; name="\xe4"', 'malformed_multipart'],
    ['form-data', 'malformed_multipart'],
    ['attachment; name="a"', 'malformed_multipart'],
    ['form-data; name="a"; name="b"', 'malformed_multipart'],
    ['form-data; name="a"; filename="b"; filename="c"', 'malformed_multipart'],
    ['form-data; name="a" x', 'malformed_multipart'],
    ['form-data; name="a', 'malformed_multipart'],
    [`form-data; name="${'a'.repeat(21)}"`, 'too_large'],
  ])('of %j is read or rejected', (disposition, expected) => {
    if (typeof expected === 'string') expect(read(disposition)).toBe(expected);
    else expect(read(disposition)).toMatchObject(expected);
  });

  it('has its fields, repeated ones joined', () => {
    const header = read('form-data; name="a"', { 'content-type': ['text/plain'], x: ['1', '2'] });
    expect(header).toMatchObject({
      fields: new Map([
        ['content-disposition', 'form-data; name="a"'],
        ['content-type', 'text/plain'],
        ['x', '1, 2'],
      ]),
    });
  });

  it('is limited in bytes and fields', () => {
    expect(read('form-data; name="a"', { x: ['a'.repeat(200)] })).toBe('too_large');
    expect(read('form-data; name="a"', { x: Array.from({ length: 33 }, () => '') })).toBe('too_large');
    expect(kindOr(() => readPartHeader({}, LIMITS))).toBe('malformed_multipart');
  });
});
