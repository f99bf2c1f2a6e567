// A response body with secrets masked: a chunked one is written as new chunks, and its end only when it is complete.
import { expect, it } from 'vitest';
import type { Framing } from '../../../src/http1/framing.ts';
import { ScrubbedBody } from '../../../src/proxy/h1/scrubbed-body.ts';
import { compileMask } from '../../../src/proxy/mask/mask.ts';

function scrubbed(framing: Framing, pieces: readonly string[], isComplete: boolean): string {
  let sent = '';
  const body = new ScrubbedBody(compileMask(['canary-secret']), framing, (piece) => {
    sent += piece.toString();
  });
  for (const piece of pieces) body.push(Buffer.from(piece));
  if (isComplete) body.end();
  return sent;
}

it('a body with a length keeps it', () => {
  const sent = scrubbed({ kind: 'length', length: 17 }, ['<canary-', 'secret> ok'], true);
  expect(sent).toBe('<*************> ok');
});

it('a chunked body is written as chunks of the masked data', () => {
  const sent = scrubbed({ kind: 'chunked' }, ['<canary-', 'secret>'], true);
  expect(sent.endsWith('0\r\n\r\n')).toBe(true);
  const data = sent.replaceAll(/([0-9a-f]+)\r\n([^]*?)\r\n/g, (_, size: string, chunk: string) => {
    expect(Number.parseInt(size, 16)).toBe(chunk.length);
    return chunk;
  });
  expect(data.replaceAll(/\s/g, '')).toBe('<*************>');
});

it('the beginning of a secret is not sent if the body is truncated', () => {
  const sent = scrubbed({ kind: 'chunked' }, ['<canary-'], false);
  expect(sent).not.toContain('canary');
  expect(sent).not.toContain('0\r\n\r\n');
});
