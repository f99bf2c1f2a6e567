// What is written to a socket, one entry for each system call.
import type { Socket } from 'node:net';

/** Replaces the socket's connection by a log. */
export function writesOf(socket: Socket): string[] {
  const writes: string[] = [];
  Object.assign(socket, {
    _write(chunk: Buffer, _encoding: string, done: () => void) {
      writes.push(chunk.toString('latin1'));
      done();
    },
    _writev(chunks: readonly { readonly chunk: Buffer }[], done: () => void) {
      writes.push(Buffer.concat(chunks.map(({ chunk }) => chunk)).toString('latin1'));
      done();
    },
  });
  return writes;
}
