// Calls what waits for the end of the current turn of the event loop: one immediate for all of them.

export type TurnEndListener = { onTurnEnd(): void };

let waiting: TurnEndListener[] = [];

/** Calls `onTurnEnd` once, after everything that has arrived with this turn was handled. */
export function awaitTurnEnd(listener: TurnEndListener): void {
  if (waiting.push(listener) === 1) setImmediate(callAll);
}

function callAll(): void {
  const called = waiting;
  waiting = [];
  for (const listener of called) listener.onTurnEnd();
}
