// What a socket is given to write, one entry for each system call that it would cost.
import type { Socket } from 'node:net';

/** Puts a log in the place of the socket's connection. */
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
