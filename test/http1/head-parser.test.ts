// The offsets of the parts of a parsed head, and what must hold for any bytes. The results for single
// messages are in messages.test.ts.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isHeadError } from '../../src/http1/head-error.ts';
import { Field } from '../../src/http1/field-name.ts';
import {
  countField,
  fieldValue,
  findField,
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from '../../src/http1/head-parser.ts';
import { runs } from '../support/run-size.ts';
import { type HeadText, limits, requestText, responseText, toWire } from './arbitraries.ts';
import { fieldTexts, requestOf, responseOf } from './parsed-head.ts';

describe('a parsed head', () => {
  const wire = 'before\r\nPUT /x?y HTTP/1.1\r\nHost: a.test\r\nx-y:\t b c \t\r\nHOST:\r\n\r\nafter';
  const head = requestOf(wire, 6);

  it('begins behind an empty line and ends past its blank line', () => {
    expect(wire.slice(head.start, head.end)).toBe(wire.slice(8, -5));
  });

  it('has the method, target and version', () => {
    expect([head.method, wire.slice(head.targetStart, head.targetEnd), head.minor]).toEqual([
      'PUT',
      '/x?y',
      1,
    ]);
  });

  it('has each line, name and trimmed value', () => {
    const { fields } = head;
    const lines = [0, 1, 2].map((i) => wire.slice(fields.nameStart(i), fields.lineEnd(i)));
    expect(lines).toEqual(['Host: a.test\r\n', 'x-y:\t b c \t\r\n', 'HOST:\r\n']);
    expect(fieldTexts(head)).toEqual(['Host', 'a.test', 'x-y', 'b c', 'HOST', '']);
    expect(fields.nameStart(0)).toBe(head.fieldsStart);
  });

  it('finds and counts fields by id', () => {
    expect([findField(head, Field.host), countField(head, Field.host)]).toEqual([0, 2]);
    expect([findField(head, Field.te), countField(head, Field.te)]).toEqual([-1, 0]);
    expect(fieldValue(head, 1)).toBe('b c');
  });

  it('stays what it is while another head is parsed', () => {
    const before = fieldTexts(head);
    requestOf('GET / HTTP/1.0\r\nLonger-Name: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n');
    expect(fieldTexts(head)).toEqual(before);
  });
});

describe('any valid head', () => {
  it('parses to what it was built from: requests', () => {
    fc.assert(
      fc.property(requestText, (built) => {
        const head = requestOf(toWire(built));
        const target = head.bytes.toString('latin1', head.targetStart, head.targetEnd);
        expect([head.method, target, head.minor]).toEqual([built.method, built.target, built.minor]);
        expectFields(head, built);
      }),
    );
  });

  it('parses to what it was built from: responses', () => {
    fc.assert(
      fc.property(responseText, (built) => {
        const head = responseOf(toWire(built));
        expect([head.status, head.minor]).toEqual([built.status, built.minor]);
        expectFields(head, built);
      }),
    );
  });

  it('is incomplete without its last byte, and not changed by the bytes around it', () => {
    fc.assert(
      fc.property(requestText, fc.uint8Array({ maxLength: 20 }), (built, around) => {
        const wire = toWire(built);
        const bytes = Buffer.concat([around, Buffer.from(wire, 'latin1'), around]);
        expect(
          parseRequestHead(bytes.subarray(0, around.length + wire.length - 1), around.length, limits),
        ).toBe(undefined);
        const head = parseRequestHead(bytes, around.length, limits);
        expect(head).toMatchObject({ start: around.length, end: around.length + wire.length });
      }),
    );
  });
});

describe('any bytes', () => {
  const pieces = fc.constantFrom(
    '\r',
    '\n',
    '\r\n',
    ' ',
    ':',
    'GET',
    '/',
    'HTTP/1.1',
    '200',
    'Host',
    '\0',
    '\xff',
    'a',
  );
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((raw) => Buffer.from(raw)),
    fc.array(pieces, { maxLength: 40 }).map((parts) => Buffer.from(parts.join(''), 'latin1')),
  );

  it('give a head, an error or nothing, and never an exception', () => {
    fc.assert(
      fc.property(bytes, (input) => {
        for (const parse of [parseRequestHead, parseResponseHead]) {
          const head = parse(input, 0, limits);
          if (head !== undefined && !isHeadError(head)) expect(head.end).toBeLessThanOrEqual(input.length);
        }
      }),
      { numRuns: runs(2000) },
    );
  });
});

describe('limits', () => {
  const wire = Buffer.from('GET /12 HTTP/1.1\r\nA: b\r\nC: d\r\n\r\n', 'latin1');
  const tight = { maxHeadBytes: wire.length, maxFields: 2, maxTargetBytes: 3 };

  it('admit what just fits', () => expect(parseRequestHead(wire, 0, tight)).toMatchObject({ method: 'GET' }));

  it.each([
    ['head_too_large', { ...tight, maxHeadBytes: wire.length - 1 }],
    ['too_many_fields', { ...tight, maxFields: 1 }],
    ['target_too_long', { ...tight, maxTargetBytes: 2 }],
  ])('refuse one more: %s', (code, limits) => {
    expect(parseRequestHead(wire, 0, limits)).toMatchObject({ code });
  });

  it('are reported as soon as they are exceeded', () => {
    expect(parseRequestHead(Buffer.from('GET /123'), 0, tight)).toMatchObject({ code: 'target_too_long' });
    expect(parseRequestHead(Buffer.alloc(33, 'M'), 0, limits)).toMatchObject({ code: 'method_too_long' });
    expect(parseResponseHead(Buffer.alloc(wire.length, 'HTTP/1.1 200 '), 0, tight)).toMatchObject({
      code: 'head_too_large',
    });
  });
});

function expectFields(head: RequestHead | ResponseHead, built: HeadText): void {
  expect(fieldTexts(head)).toEqual(built.fields.flatMap(({ name, value }) => [name, value]));
}

describe('of a response', () => {
  it.each(['2:0', '1/9', '20a', ' 200', '2 0', '+20', '099', '600', '20'])(
    'the status %s is rejected',
    (status) => {
      const head = parseResponseHead(Buffer.from(`HTTP/1.1 ${status} OK\r\n\r\n`), 0, limits);
      expect(head).toMatchObject({ code: 'status_malformed' });
    },
  );

  it.each([100, 109, 190, 200, 599])('the status %i is read', (status) => {
    expect(responseOf(`HTTP/1.1 ${status} OK\r\n\r\n`).status).toBe(status);
  });

  it('something else than a space before the status is rejected', () => {
    const head = parseResponseHead(Buffer.from('HTTP/1.1\t200 OK\r\n\r\n'), 0, limits);
    expect(head).toMatchObject({ code: 'status_malformed' });
  });
});

describe('a head that is as long as may be', () => {
  const wire = 'HTTP/1.1 200 OK\r\nA: b\r\n\r\n';
  const among = (text: string): Buffer => Buffer.from(`before${text}`);
  const tight = { ...limits, maxHeadBytes: wire.length };

  it('is read, wherever it begins', () => {
    expect(parseResponseHead(among(wire), 6, tight)).toMatchObject({ status: 200 });
  });

  it('and a longer one is reported as soon as its bytes are there, and not before', () => {
    const longer = wire.replace('b', 'bb');
    expect(parseResponseHead(among(longer), 6, tight)).toMatchObject({ code: 'head_too_large' });
    expect(parseResponseHead(among(longer.slice(0, wire.length - 1)), 6, tight)).toBeUndefined();
  });

  it('of a request too', () => {
    const request = 'GET / HTTP/1.1\r\nA: bb\r\n\r\n';
    const limit = { ...limits, maxHeadBytes: request.length - 1 };
    expect(parseRequestHead(among(request), 6, limit)).toMatchObject({ code: 'head_too_large' });
    expect(parseRequestHead(among(request.slice(0, -2)), 6, limit)).toBeUndefined();
  });
});

describe('a target', () => {
  it.each([
    ['GET /a\nb HTTP/1.1\r\n\r\n', 'bare_lf'],
    ['GET /a"b HTTP/1.1\r\n\r\n', 'target_malformed'],
    ['GET  HTTP/1.1\r\n\r\n', 'target_malformed'],
  ])('%j is refused: %s', (wire, code) => {
    expect(parseRequestHead(Buffer.from(wire), 0, limits)).toMatchObject({ code });
  });
});
