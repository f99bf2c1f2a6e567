// What must not change is written byte for byte, and what is written parses to the head that was checked.
import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { readConnectionFields } from '../../src/http1/connection-fields.ts';
import { isHeadError } from '../../src/http1/head-error.ts';
import { requestFraming, responseFraming } from '../../src/http1/framing.ts';
import {
  buildHead,
  fieldLine,
  rewriteRequestHead,
  rewriteResponseHead,
} from '../../src/http1/head-writer.ts';
import { requestText, responseText, target, toWire } from './arbitraries.ts';
import { fieldTexts, requestOf, responseOf } from './parsed-head.ts';

const keepAll = new Uint8Array(100);

describe('rewriting', () => {
  it('drops lines, appends lines, sets the target', () => {
    const head = requestOf('..GET /a HTTP/1.1\r\nA: 1\r\nB:2\r\nC:\t3 \r\nD: 4\r\n\r\nbody', 2);
    const edit = { drop: Uint8Array.of(1, 0, 0, 1), append: [fieldLine('E', '5'), fieldLine('F', '6')] };
    expect(rewriteRequestHead(head, edit).toString()).toBe(
      'GET /a HTTP/1.1\r\nB:2\r\nC:\t3 \r\nE: 5\r\nF: 6\r\n\r\n',
    );
    expect(rewriteRequestHead(head, { ...edit, target: Buffer.from('/longer') }).toString()).toBe(
      'GET /longer HTTP/1.1\r\nB:2\r\nC:\t3 \r\nE: 5\r\nF: 6\r\n\r\n',
    );
  });

  it('uses all of the memory that it takes', () => {
    fc.assert(
      fc.property(
        requestText,
        fc.uint8Array({ min: 0, max: 1, minLength: 100, maxLength: 100 }),
        fc.option(target),
        (built, drop, target) => {
          const edit = {
            drop,
            append: [fieldLine('A', 'b')],
            target: target === null ? undefined : Buffer.from(target),
          };
          const alloc = vi.spyOn(Buffer, 'allocUnsafe');
          const written = rewriteRequestHead(requestOf(toWire(built)), edit);
          expect(alloc.mock.calls).toEqual([[written.length]]);
          alloc.mockRestore();
        },
      ),
    );
  });

  it('can drop every line', () => {
    const head = responseOf('HTTP/1.1 200\r\nA: 1\r\nB: 2\r\n\r\n');
    expect(rewriteResponseHead(head, { drop: Uint8Array.of(1, 1), append: [] }).toString()).toBe(
      'HTTP/1.1 200\r\n\r\n',
    );
  });

  it('changes nothing but the version when no edit is given', () => {
    fc.assert(
      fc.property(requestText, responseText, (request, response) => {
        const edit = { drop: keepAll, append: [] };
        const sentRequest = toWire({
          ...request,
          startLine: `${request.method} ${request.target} HTTP/1.1\r\n`,
        });
        const sentResponse = toWire(response).replace(/^HTTP\/1\.0/, 'HTTP/1.1');
        expect(rewriteRequestHead(requestOf(toWire(request)), edit).toString('latin1')).toBe(sentRequest);
        expect(rewriteResponseHead(responseOf(toWire(response)), edit).toString('latin1')).toBe(sentResponse);
      }),
    );
  });

  it('writes its own version, not that of the message that it forwards', () => {
    const edit = { drop: Uint8Array.of(1), append: [] };
    const request = requestOf('..\r\nGET /a HTTP/1.0\r\nA: 1\r\n\r\n', 2);
    expect(rewriteRequestHead(request, edit).toString()).toBe('GET /a HTTP/1.1\r\n\r\n');
    expect(rewriteRequestHead(request, { ...edit, target: Buffer.from('/longer') }).toString()).toBe(
      'GET /longer HTTP/1.1\r\n\r\n',
    );
    const response = responseOf('HTTP/1.0 200 OK\r\nA: 1\r\n\r\n');
    expect(rewriteResponseHead(response, edit).toString()).toBe('HTTP/1.1 200 OK\r\n\r\n');
    // What was received stays as it is.
    expect(response.bytes.toString('latin1')).toContain('HTTP/1.0');
  });

  it('preserves order, case and bytes of every line it does not drop', () => {
    const marks = fc.uint8Array({ min: 0, max: 1, minLength: 100, maxLength: 100 });
    fc.assert(
      fc.property(requestText, marks, fc.option(target), (built, drop, target) => {
        const written = rewriteRequestHead(requestOf(toWire(built)), {
          drop,
          append: [fieldLine('Authorization', 'Bearer x')],
          ...(target === null ? {} : { target: Buffer.from(target) }),
        });
        const lines = built.fields.filter((_, i) => drop[i] === 0).map(({ line }) => line);
        const startLine = `${built.method} ${target ?? built.target} HTTP/1.1\r\n`;
        expect(written.toString('latin1')).toBe(
          `${startLine}${lines.join('')}Authorization: Bearer x\r\n\r\n`,
        );
      }),
    );
  });

  it('writes what parses to the head that was checked', () => {
    const framingLine = fc.constantFrom('', 'Content-Length: 7\r\n', 'Transfer-Encoding:chunked\r\n');
    fc.assert(
      fc.property(
        requestText,
        framingLine,
        fc.constantFrom('close', 'x-a', 'te, keep-alive'),
        (built, line, option) => {
          const startLine = `POST ${built.target} HTTP/1.1\r\n${line}Connection: ${option}\r\nTE: a\r\n`;
          const head = requestOf(toWire({ ...built, startLine }));
          const connection = readConnectionFields(head);
          if (isHeadError(connection)) return;
          const again = requestOf(
            rewriteRequestHead(head, { drop: connection.drop, append: [] }).toString('latin1'),
          );
          expect(requestFraming(again)).toEqual(requestFraming(head));
          expect(fieldTexts(again)).toEqual(fieldTexts(head).filter((_, i) => connection.drop[i >> 1] === 0));
          const hop = readConnectionFields(again);
          expect(isHeadError(hop) ? hop.code : [...hop.drop].includes(1)).toBe(false);
        },
      ),
    );
  });
});

describe('writing', () => {
  it('puts one space behind the colon', () => expect(fieldLine('A', 'b c').toString()).toBe('A: b c\r\n'));

  it('writes a byte above 0x7f as one byte', () => expect([...fieldLine('A', '\xe9')]).toContain(0xe9));

  it('builds a head that parses', () => {
    const head = responseOf(
      buildHead('HTTP/1.1 502 Bad Gateway', [['Content-Length', '2']]).toString('latin1'),
    );
    expect([head.status, responseFraming(head, 'GET')]).toEqual([502, { kind: 'length', length: 2 }]);
  });

  it.each([
    ['CR', 'a\rb'],
    ['LF', 'a\nb'],
    ['NUL', 'a\0b'],
    ['DEL', 'a\x7fb'],
    ['a wide character whose low byte is LF', 'a\u010ab'],
  ])('throws on %s', (_name, text) => {
    expect(() => fieldLine('A', text)).toThrow(TypeError);
    expect(() => fieldLine(text, 'a')).toThrow(TypeError);
    expect(() => buildHead(`HTTP/1.1 200 ${text}`, [])).toThrow(TypeError);
  });

  it('throws on a name that is no token', () => {
    expect(() => fieldLine('A b', 'c')).toThrow(TypeError);
    expect(() => fieldLine('A:', 'c')).toThrow(TypeError);
    expect(() => fieldLine('', 'c')).toThrow(TypeError);
  });
});
