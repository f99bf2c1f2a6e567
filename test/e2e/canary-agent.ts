// The agents of the canary test: requests that succeed and requests that fail in every way. Everything that an agent can
// read is recorded.
import { WireClient } from '../support/wire-client.ts';
import { badResponses, goodResponse } from './canary-peers.ts';
import type { CanaryScene } from './canary-scene.ts';

/** An agent of one sandbox: its proxy port and its token. */
export type Agent = { readonly port: number; readonly token: string; readonly caPem: string };

type AgentRequest = {
  readonly path?: string;
  readonly port?: number;
  readonly fields?: readonly string[];
};

/** Requests that get their credential injected, and see it in no response. */
export async function succeed(scene: CanaryScene, agent: Agent, hosts: readonly string[]): Promise<void> {
  scene.peers.callback.respondWith(goodResponse(scene.values));
  for (const host of hosts) await ask(scene, agent, host);
  const fields = ['Connection: upgrade', 'Upgrade: websocket'];
  await ask(scene, agent, 'opaque.test', { path: '/upgrade', fields });
}

/** Requests that fail after their credential was sent to the host or the callback. */
export async function failInEveryWay(scene: CanaryScene, agent: Agent): Promise<void> {
  const { untrusted, callback } = scene.peers;
  await ask(scene, agent, 'untrusted.test', { port: untrusted.port });
  await ask(scene, agent, 'lost.test');
  await ask(scene, agent, 'refused.test', { port: 1 });
  for (const path of ['/malformed', '/proxy-auth', '/reset', '/cut'])
    await ask(scene, agent, 'opaque.test', { path });
  for (const response of badResponses(scene.values)) {
    callback.respondWith(response);
    await ask(scene, agent, 'uncalled.test');
  }
  await ask(scene, { ...agent, token: `${agent.token}x` }, 'opaque.test');
  await askInClear(scene, agent);
}

async function ask(
  scene: CanaryScene,
  agent: Agent,
  host: string,
  { path = '/echo', port = scene.peers.origin.port, fields = ['Connection: close'] }: AgentRequest = {},
): Promise<void> {
  const authority = `${host}:${port}`;
  await using client = await WireClient.connect(agent.port);
  const connected = await client.openTunnel(authority, [proxyAuthorization(agent)]);
  scene.keep('agent responses', connected.text);
  if (connected.status !== 200) await client.readBody();
  else {
    await client.startTls({ ca: agent.caPem, name: host });
    await client.send([`GET ${path} HTTP/1.1`, `Host: ${authority}`, ...fields, '', ''].join('\r\n'));
    await client.finished;
  }
  scene.keep('agent responses', Buffer.from(client.transcript, 'latin1'));
  // The last head is that of the final response.
  const [, status] = [...client.transcript.matchAll(/^HTTP\/1\.1 (\d+)/gm)].at(-1) ?? [];
  scene.statuses.push(`${host}${path} ${status}`);
}

/** Without a tunnel: the host of a rule, the same with a bare LF in a field with a secret, and no host at all. */
async function askInClear(scene: CanaryScene, agent: Agent): Promise<void> {
  const authority = `opaque.test:${scene.peers.origin.port}`;
  const good = [`GET http://${authority}/ HTTP/1.1`, `Host: ${authority}`, proxyAuthorization(agent)];
  const heads = [
    good,
    [...good, `X: ${scene.values.opaque}\nY`],
    ['GET / HTTP/1.1', proxyAuthorization(agent)],
  ];
  for (const lines of heads) {
    await using client = await WireClient.connect(agent.port);
    await client.send([...lines, 'Connection: close', '', ''].join('\r\n'));
    await client.finished;
    scene.keep('agent responses', Buffer.from(client.transcript, 'latin1'));
    scene.statuses.push(`in plaintext ${client.transcript.slice(9, 12)}`);
  }
}

function proxyAuthorization({ token }: Agent): string {
  return `Proxy-Authorization: Basic ${Buffer.from(`sallyport:${token}`).toString('base64')}`;
}
