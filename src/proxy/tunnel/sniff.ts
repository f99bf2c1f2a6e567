// Classifies the first bytes inside an intercepted tunnel: a ClientHello, an HTTP request, or neither. A ClientHello may
// come in any number of segments and records; it is read until it is complete. Every byte is put back into the socket.
import type { Socket } from 'node:net';
import { createHelloCollector, type HelloReading } from '../../tls/client-hello.ts';
import type { ClientHello } from '../../tls/hello-message.ts';

export type Sniffed =
  | ({ readonly kind: 'hello' } & ClientHello)
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'http' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'closed' };

/** Calls `found` once, with the socket paused, its bytes put back and our listeners removed. */
export function sniff(socket: Socket, timeoutMs: number, found: (sniffed: Sniffed) => void): void {
  const collector = createHelloCollector();
  const finish = (sniffed: Sniffed): void => {
    clearTimeout(timer);
    socket.off('data', onData).off('end', onClosed).off('close', onClosed).off('error', onClosed);
    socket.pause();
    if (sniffed.kind === 'closed') socket.on('error', ignoreLateError);
    else if (collector.bytes.length > 0) socket.unshift(collector.bytes);
    found(sniffed);
  };
  const onData = (chunk: Buffer): void => {
    const sniffed = classify(collector.push(chunk), collector.bytes);
    if (sniffed) finish(sniffed);
  };
  const onClosed = (): void => finish({ kind: 'closed' });
  const timer = setTimeout(() => finish({ kind: 'timeout' }), timeoutMs);
  socket.on('data', onData).on('end', onClosed).on('close', onClosed).on('error', onClosed);
  socket.resume();
}

function ignoreLateError(): void {}

function classify(hello: HelloReading, bytes: Buffer): Sniffed | undefined {
  switch (hello.kind) {
    case 'more':
      return undefined;
    case 'hello':
      return hello;
    case 'error':
      return { kind: 'error', code: hello.code };
    case 'not_tls':
      return { kind: isMethodStart(bytes[0]) ? 'http' : 'unknown' };
  }
}

/** Every registered method begins with an upper-case letter. */
function isMethodStart(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x41 && byte <= 0x5a;
}
