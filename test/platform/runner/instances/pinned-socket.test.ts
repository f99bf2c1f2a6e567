// What a deployment may put into the place of its socket, and who is connected to then.
import { once } from 'node:events';
import { symlink, unlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { pinSocket } from '../../../../src/platform/runner/instances/pinned-socket.ts';
import { createScratch } from '../../../support/scratch.ts';

async function serve(path: string, said: string): Promise<Server> {
  const server = createServer((socket) => socket.end(said));
  await once(server.listen(path), 'listening');
  return server;
}

const never: AbortSignal = new AbortController().signal;

it('leads to the socket that was there, whatever is there later', async () => {
  await using scratch = await createScratch();
  const [from, to] = ['api.sock', 'pinned.sock'].map((name) => join(scratch.path, name)) as [string, string];
  const pinning = pinSocket(from, to, never);
  const own = await serve(from, 'own');
  await pinning;
  await unlink(from);
  const other = await serve(from, 'other');
  expect(await text(connect(to))).toBe('own');
  own.close();
  other.close();
});

it('does not follow a link, and takes nothing but a socket', async () => {
  await using scratch = await createScratch();
  const admin = await serve(join(scratch.path, 'admin.sock'), 'admin');
  const place = (name: string): string => join(scratch.path, name);
  await symlink(place('admin.sock'), place('link'));
  await writeFile(place('file'), '');
  for (const name of ['link', 'file'])
    await expect(pinSocket(place(name), place('to'), never)).rejects.toThrow('something else');
  // Nothing of the attempts is left.
  await pinSocket(place('admin.sock'), place('to'), never);
  admin.close();
});

it('ends when the waiting is given up', async () => {
  await using scratch = await createScratch();
  const giving = new AbortController();
  const pinning = pinSocket(join(scratch.path, 'absent'), join(scratch.path, 'to'), giving.signal);
  giving.abort();
  await expect(pinning).rejects.toThrow();
});
