// The requests of h2-rows.ts. Whatever a row does, another client's connection goes on being served, and what was refused
// never reached the origin.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { H2Request } from '../support/h2-exchange.ts';
import { type H2WireClient, refusalOf } from '../support/h2-wire-client.ts';
import type { SentField } from '../support/hpack.ts';
import { createH2Path, type H2Path } from './h2-path.ts';
import { type RequestRow, requestRows } from './h2-rows.ts';

let path: H2Path;
let bystander: H2WireClient;
beforeAll(async () => {
  path = await createH2Path();
  bystander = await path.client();
});
afterAll(() => path[Symbol.asyncDispose]());

/** All that reached the origin since, but for the bystander's request, which came behind it. */
async function arrivedSince(before: number): Promise<readonly H2Request[]> {
  expect(await bystander.request(bystander.fields('/bystander'))).toMatchObject({ status: 200 });
  return path.origin.streams.slice(before).filter((stream) => stream.path !== '/bystander');
}

function placed(text: string): string {
  return text.replaceAll('{authority}', path.authority).replaceAll('{port}', String(path.origin.port));
}

function fieldsOf(client: H2WireClient, { pseudo, extra }: RequestRow): readonly SentField[] {
  const named = Object.entries(pseudo).map(([name, value]) => [name, value && placed(value)]);
  const others = extra.map((field): SentField => {
    return Buffer.isBuffer(field) ? field : [field[0], placed(field[1]), field[2]];
  });
  return client.fields('/row', others, Object.fromEntries(named));
}

/** What the client sees become of it, as the row says it. */
async function outcomeOf(client: H2WireClient, row: RequestRow): Promise<unknown> {
  const { body, trailers } = row;
  const more = { ...(body === undefined ? {} : { body }), ...(trailers === undefined ? {} : { trailers }) };
  const asked = client.request(fieldsOf(client, row), more);
  if ('lost' in row.verdict)
    return {
      lost: await asked.then(
        () => false,
        () => true,
      ),
    };
  const answer = await asked;
  if ('reset' in row.verdict) return { reset: answer.reset };
  return { answered: [answer.status, refusalOf(answer)] };
}

describe.each([...new Set(requestRows.map(({ attack }) => attack))])('%s', (attack) => {
  it.each(requestRows.filter((row) => row.attack === attack))('$what', async (row) => {
    const before = path.origin.streams.length;
    await using client = await path.client();
    const outcome = await outcomeOf(client, row);
    const arrived = await arrivedSince(before);
    if ('arrives' in row.verdict) {
      expect(outcome).toEqual({ answered: [200, undefined] });
      expect(arrived).toHaveLength(1);
      const expected = row.verdict.arrives.map(([name, value]) => [name, placed(value)]);
      expect(arrived[0]?.headers).toEqual(expected);
      expect(arrived[0]).toMatchObject({ trailers: undefined, isEnded: true });
      const hidden = expected.filter(([name]) => name === 'authorization').map(([name]) => name);
      expect(arrived[0]?.neverIndexed).toEqual(expect.arrayContaining(hidden));
      expect(arrived[0]?.body.content.toString()).toBe(row.body ?? '');
      return;
    }
    expect(outcome).toEqual(row.verdict);
    if (row.mayBegin) expect(await Promise.all(arrived.map((stream) => stream.ended()))).not.toContain(true);
    else expect(arrived).toEqual([]);
  });
});
