// The concurrent requests of a fleet, and their only valid responses: a signature of their own nonce, with the secrets of
// their own sandbox. Violations are returned as sentences.
import { WireClient } from '../support/wire-client.ts';
import { type Fleet, type Host, type Member, sign, tokenFields } from './isolation-fleet.ts';

let lastNonce = 0;

/** One request with a fresh nonce; returns what is wrong with its response. */
export async function ask(
  fleet: Fleet,
  client: WireClient,
  member: Member,
  host: Host,
): Promise<readonly string[]> {
  lastNonce += 1;
  const nonce = `n${lastNonce}`;
  const target = `/${member.id}/${nonce}`;
  const lines = [`GET ${target} HTTP/1.1`, `Host: ${host}:${fleet.origin.port}`, `X-Nonce: ${nonce}`];
  await client.send([...lines, 'X-Box: of the client', '', ''].join('\r\n'));
  const { head, text } = await client.readResponse();
  const [signature, ...fields] = text.split('\n');
  if (head.status !== 200) return [`${member.id} got ${head.status}: ${text}`];
  if (signature !== sign(nonce, target)) return [`${member.id} got the response to another request`];
  return fieldErrors(member, host, fields);
}

/** The call that provided the headers: two sandboxes must never share one. */
const callers = new Map<string, string>();

function fieldErrors({ id, secret }: Member, host: Host, fields: readonly string[]): readonly string[] {
  const [authorization = '', box, ...more] = fields;
  if (more.length > 0 || (box !== `X-Box: ${id}` && (host === 'api.test' || box !== 'X-Box: nobody')))
    return [`${id} was given ${fields.join(', ')}`];
  if (host === 'api.test')
    return authorization === `Authorization: Bearer ${secret}` ? [] : [`${id} had ${authorization}`];
  const caller = callers.get(authorization) ?? id;
  callers.set(authorization, caller);
  return caller === id ? [] : [`${id} was given what ${caller} had asked for`];
}

/** Every member sends this many requests over one tunnel, all concurrently; returns the violations. */
export async function askAll(
  fleet: Fleet,
  how: { readonly host: Host; readonly members: readonly Member[]; readonly times: number },
): Promise<readonly string[]> {
  const { host, members, times } = how;
  const found = await Promise.all(
    members.map(async (member) => {
      const wrong: string[] = [];
      await using client = await fleet.tunnel(member, host);
      for (let i = 0; i < times; i += 1) wrong.push(...(await ask(fleet, client, member, host)));
      return wrong;
    }),
  );
  return found.flat();
}

/** Records with a sandbox other than that in their path, and requests without exactly one record. */
export async function recordErrors(fleet: Fleet, requests: number): Promise<readonly string[]> {
  // Records are written in order: those of earlier responses are there already.
  const [last] = fleet.members;
  if (last) await askAll(fleet, { host: 'api.test', members: [last], times: 1 });
  const lastPath = `/${last?.id}/n${lastNonce}`;
  await fleet.proxy.process.record(({ path }) => path === lastPath);
  const records = fleet.proxy.process.records.filter(
    ({ msg, path }) => msg === 'exchange' && path !== undefined,
  );
  const crossed = records.filter(({ sandbox, path }) => !String(path).startsWith(`/${String(sandbox)}/`));
  const paths = new Set(records.map(({ path }) => path));
  return [
    ...crossed.map(({ sandbox, path }) => `${String(path)} is recorded for ${String(sandbox)}`),
    ...(records.length === requests + 1 && paths.size === records.length
      ? []
      : [`${requests + 1} requests have ${records.length} records of ${paths.size} paths`]),
  ];
}

/** Sends requests until it is stopped; a failure before that is a violation. */
export function keepAsking(fleet: Fleet, members: readonly Member[]): { stop(): Promise<readonly string[]> } {
  const stopped = new AbortController();
  const running = members.map(async (member) => {
    const wrong: string[] = [];
    await using client = await fleet.tunnel(member, 'api.test');
    while (!stopped.signal.aborted) wrong.push(...(await ask(fleet, client, member, 'api.test')));
    return wrong;
  });
  return {
    async stop() {
      stopped.abort();
      const ended = await Promise.allSettled(running);
      return ended.flatMap((end) => (end.status === 'fulfilled' ? end.value : [String(end.reason)]));
    },
  };
}

/** Clients of one member in every state: sending, idle in a tunnel, in a blind tunnel, idle on the proxy port. */
export async function occupy(
  fleet: Fleet,
  member: Member,
): Promise<{ readonly endedMs: Promise<readonly number[]> }> {
  const asking = await fleet.tunnel(member, 'api.test');
  const idle = await fleet.tunnel(member, 'api.test');
  await ask(fleet, idle, member, 'api.test');
  const blind = await WireClient.connect(member.port);
  await blind.openTunnel(`blind.test:${fleet.plain.port}`, tokenFields(member));
  const forwarded = await WireClient.connect(member.port);
  const place = `plain.test:${fleet.plain.port}`;
  await forwarded.send(
    [`GET http://${place}/ HTTP/1.1`, `Host: ${place}`, ...tokenFields(member), '', ''].join('\r\n'),
  );
  await forwarded.readResponse();
  const clients = [asking, idle, blind, forwarded];
  const ended = clients.map(({ finished }) => finished.then(() => performance.now()));
  void askUntilCut(fleet, asking, member);
  return { endedMs: Promise.all(ended).finally(() => clients.map((one) => one[Symbol.asyncDispose]())) };
}

async function askUntilCut(fleet: Fleet, client: WireClient, member: Member): Promise<void> {
  try {
    for (;;) await ask(fleet, client, member, 'api.test');
  } catch {
    // The disconnection that the test waits for.
  }
}
