// How a request is sent: what one chunk of the client brings goes to the upstream in one write, however many pieces of the
// body that is.
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import type { RequestPlan } from '../../../src/proxy/gate/request-plan.ts';
import { RequestOut } from '../../../src/proxy/h1/request-out.ts';
import { writesOf } from '../write-log.ts';

const LONG_MS = 60_000;
const COUNT = 3;
// A head that was cut is written anew, apart from its data; only the first of a chunk can be.
const cut = `${'1\r\na\r\n'.repeat(COUNT)}1\r`;
const CHUNKS = ['1', `\r\nb\r\n${cut}`, `\na\r\n${cut}`, '\nc\r\n0\r\nX: y\r\n\r\n'];
const BODY = `1\r\nb\r\n${'1\r\na\r\n'.repeat(2 * COUNT + 1)}1\r\nc\r\n0\r\n\r\n`;

/** The parts of a plan that RequestOut uses. */
function plan(expectsContinue: boolean): RequestPlan {
  return { framing: { kind: 'chunked' }, expectsContinue } as RequestPlan;
}

it('a chunk of the client is one write', () => {
  const host = new Socket();
  const writes = writesOf(host);
  const out = new RequestOut(plan(false), new Socket());
  out.send(Buffer.from('HEAD'), host, LONG_MS);
  for (const chunk of CHUNKS) out.push(Buffer.from(chunk));
  expect(out.isForwarded).toBe(true);
  expect(writes.join('')).toBe(`HEAD${BODY}`);
  // The head, then every chunk but the first, which holds no whole size.
  expect(writes).toHaveLength(CHUNKS.length);
});

it.each([false, true])('a request without a body is one write (Expect: %s)', (expectsContinue) => {
  const host = new Socket();
  const writes = writesOf(host);
  const client = new Socket();
  client.pause();
  const framing = { kind: 'length', length: 0 } as const;
  const out = new RequestOut({ framing, expectsContinue } as RequestPlan, client);
  out.send(Buffer.from('HEAD'), host, LONG_MS);
  // The upstream may send a 100 nevertheless.
  out.openBody();
  expect(writes).toEqual(['HEAD']);
  expect([out.bytes, out.isForwarded, client.isPaused()]).toEqual([4, true, false]);
});

it('a body that waited for 100 Continue is one write', () => {
  const host = new Socket();
  const writes = writesOf(host);
  const out = new RequestOut(plan(true), new Socket());
  out.send(Buffer.from('HEAD'), host, LONG_MS);
  for (const chunk of CHUNKS) out.push(Buffer.from(chunk));
  expect(writes).toEqual(['HEAD']);
  out.openBody();
  expect(writes).toEqual(['HEAD', BODY]);
});
