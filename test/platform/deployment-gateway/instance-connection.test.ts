// The connection to an instance: what is said of one that refuses it, and of a client that has left meanwhile.
import { once } from 'node:events';
import { createServer, Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Refusal } from '../../../src/gateway/refusal.ts';
import { connectTo } from '../../../src/platform/deployment-gateway/instance-connection.ts';
import { createScratch } from '../../support/scratch.ts';

function toTaken(socketPath: string) {
  const said: string[] = [];
  const taken = {
    instance: { id: 'i', socketPath, gatewayToken: 't' },
    revision: { id: 'r', access: 'gateway' as const },
    sent: () => void said.push('sent'),
    refused: () => void said.push('refused'),
    release: () => void said.push('released'),
  };
  return { taken, said };
}

it('is said to be there once it is', async () => {
  await using scratch = await createScratch();
  const path = join(scratch.path, 'api.sock');
  const server = createServer().listen(path);
  await once(server, 'listening');
  const { taken, said } = toTaken(path);
  const socket = await connectTo(taken, new AbortController().signal);
  expect([socket instanceof Socket, said]).toEqual([true, ['sent']]);
  if (socket instanceof Socket) socket.destroy();
  server.close();
});

it('to one that is gone is a refusal, after which others are chosen', async () => {
  const { taken, said } = toTaken('/nowhere/api.sock');
  const refused = await connectTo(taken, new AbortController().signal);
  expect(refused instanceof Refusal && [refused.status, refused.fields]).toEqual([
    ...[503, { 'Retry-After': '1' }],
  ]);
  expect(said).toEqual(['refused']);
});

it('that nobody wants any more says nothing about the instance', async () => {
  const { taken, said } = toTaken('/nowhere/api.sock');
  const reason = new Error('left');
  await expect(connectTo(taken, AbortSignal.abort(reason))).rejects.toThrow(reason);
  expect(said).toEqual([]);
});
