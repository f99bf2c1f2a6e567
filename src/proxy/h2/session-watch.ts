// Checks the HTTP/2 session of every client four times a second: node:http2 does not report everything a client does, nor
// that a session has ended while it waits for the socket.

export const TICKS_PER_SECOND = 4;

export type Watched = { tick(): void };

const watched = new Set<Watched>();
let ticker: NodeJS.Timeout | undefined;

export function watch(one: Watched): void {
  watched.add(one);
  ticker ??= setInterval(tickAll, 1_000 / TICKS_PER_SECOND).unref();
}

export function unwatch(one: Watched): void {
  watched.delete(one);
  if (watched.size > 0) return;
  clearInterval(ticker);
  ticker = undefined;
}

function tickAll(): void {
  for (const one of watched) one.tick();
}
