// A socket file at which nobody listens, as a killed server leaves it.
import { once } from 'node:events';
import { link } from 'node:fs/promises';
import { createServer } from 'node:net';

export async function leaveStaleSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}.live`);
  await once(server, 'listening');
  // The name that it was bound with goes with the server; this one stays.
  await link(`${path}.live`, path);
  server.close();
  await once(server, 'close');
}
