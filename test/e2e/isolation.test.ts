// Many sandboxes of one process under concurrent load: nothing of one reaches another, and a change to one does not
// affect the others.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WireClient } from '../support/wire-client.ts';
import { type Fleet, type Member, createFleet, tokenFields } from './isolation-fleet.ts';
import { askAll, ask, keepAsking, occupy, recordErrors } from './isolation-load.ts';
import { runs } from '../support/run-size.ts';

const SIZE = runs(200, 60);
const MAX_SANDBOX_BYTES = 3_000_000;
const MAX_END_MS = 100;

let fleet: Fleet;

beforeAll(async () => {
  fleet = await createFleet(SIZE);
}, 60_000);

afterAll(() => fleet[Symbol.asyncDispose]());

/** The nth member that uses a token on the main listener, or a listener of its own. */
function member(kind: 'by token' | 'by listener', n: number): Member {
  const found = fleet.members.filter(({ hasOwnListener }) => hasOwnListener === (kind === 'by listener'))[n];
  if (!found) throw new Error('the fleet is too small');
  return found;
}

/** A plaintext request that a client sends to a proxy. */
function forwarded(token: string | undefined): string {
  const place = `plain.test:${fleet.plain.port}`;
  return [`GET http://${place}/ HTTP/1.1`, `Host: ${place}`, ...tokenFields({ token }), '', ''].join('\r\n');
}

async function statusOf(client: WireClient, bytes: string): Promise<number> {
  await client.send(bytes);
  return (await client.readResponse()).head.status;
}

describe(`${SIZE} sandboxes`, () => {
  it('need little memory when they are idle, each after one request', async () => {
    for (const some of chunksOf(fleet.members, 20))
      expect(await askAll(fleet, { host: 'api.test', members: some, times: 1 })).toEqual([]);
    const each = (fleet.proxy.process.usage().residentBytes - fleet.emptyBytes) / SIZE;
    console.info(`${SIZE} idle sandboxes: ${(each / 1e6).toFixed(2)} MB each`);
    expect(each).toBeLessThanOrEqual(MAX_SANDBOX_BYTES);
  });

  it('serve their own clients with their own secrets, and are recorded with their own names', async () => {
    const some = fleet.members.filter((_, i) => i % 4 < 2);
    const loads = [
      askAll(fleet, { host: 'api.test', members: fleet.members, times: 4 }),
      askAll(fleet, { host: 'called.test', members: some, times: 2 }),
    ];
    expect((await Promise.all(loads)).flat()).toEqual([]);
    expect(await recordErrors(fleet, SIZE + SIZE * 4 + some.length * 2)).toEqual([]);
    // One call for each sandbox, however similar they are.
    expect(fleet.endpoint.calls).toHaveLength(some.length);
  });
});

describe('a client connection', () => {
  it("is rejected with another sandbox's token, and can still be used with its own", async () => {
    const [one, other] = [member('by token', 0), member('by token', 1)];
    await using client = await WireClient.connect(one.port);
    const before = fleet.plain.requests.length;
    expect(await statusOf(client, forwarded(one.token))).toBe(200);
    for (const token of [other.token, undefined, 'the-token-of-default-0123456789', 'of-nobody'])
      expect(await statusOf(client, forwarded(token))).toBe(407);
    expect(await statusOf(client, forwarded(one.token))).toBe(200);
    expect((await client.openTunnel('api.test:443', tokenFields(other))).status).toBe(407);
    expect(fleet.plain.requests.length - before).toBe(2);
  });

  it("is rejected by another sandbox's listener", async () => {
    const [one, other] = [member('by token', 0), member('by listener', 0)];
    for (const [at, shown] of [
      [other, one.token],
      [one, other.token ?? 'of-nobody'],
    ] as const) {
      await using client = await WireClient.connect(at.port);
      expect(await statusOf(client, forwarded(shown))).toBe(407);
    }
  });
});

describe.each([
  ['by token', 2],
  ['by listener', 2],
] as const)('a sandbox %s that is removed under load', (kind, n) => {
  it('disconnects its clients immediately, and does not affect the others', async () => {
    const gone = member(kind, n);
    const others = keepAsking(fleet, [
      member('by token', 3),
      member('by token', 4),
      member('by listener', 3),
    ]);
    const { endedMs } = await occupy(fleet, gone);
    expect((await fleet.admin('DELETE', `/v1/sandboxes/${gone.id}`)).status).toBe(204);
    const respondedMs = performance.now();
    expect(Math.max(...(await endedMs)) - respondedMs).toBeLessThanOrEqual(MAX_END_MS);
    expect(await others.stop()).toEqual([]);
    if (kind === 'by listener') return expect(WireClient.connect(gone.port)).rejects.toThrow('ECONNREFUSED');
    await using client = await WireClient.connect(gone.port);
    expect(await statusOf(client, forwarded(gone.token))).toBe(407);
  });
});

describe('a sandbox whose token is changed under load', () => {
  it.each([
    ['by token', 5],
    ['by listener', 5],
  ] as const)(
    '%s: disconnects its clients immediately, and then accepts only the new token',
    async (kind, n) => {
      const changed = member(kind, n);
      const old = changed.token;
      const others = keepAsking(fleet, [member('by token', 6), member('by listener', 6)]);
      const { endedMs } = await occupy(fleet, changed);
      const path = `/v1/sandboxes/${changed.id}`;
      const { status, body } = await fleet.admin('PATCH', path, { token: 'generate' });
      const respondedMs = performance.now();
      expect(status).toBe(200);
      changed.token = String(body['token']);
      expect(Math.max(...(await endedMs)) - respondedMs).toBeLessThanOrEqual(MAX_END_MS);
      expect(await others.stop()).toEqual([]);
      await using refused = await WireClient.connect(changed.port);
      expect(await statusOf(refused, forwarded(old))).toBe(407);
      await using client = await fleet.tunnel(changed, 'api.test');
      expect(await ask(fleet, client, changed, 'api.test')).toEqual([]);
    },
  );
});

function chunksOf<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}
