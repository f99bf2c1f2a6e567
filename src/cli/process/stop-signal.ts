// Waits for the signal that ends a program, and for the second one, which ends it at once.

/**
 * Resolves with the first signal. A second signal ends the process at once, as does `timeoutMs` after the first one: a
 * start can hang as well as a shutdown, for example when the database does not respond. The process then leaves what a
 * crash leaves.
 */
export function waitForSignal(timeoutMs: number, onTimeout: () => void): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    const exit = (): never => process.exit(signal === 'SIGINT' ? 130 : 143);
    if (isStopping) exit();
    isStopping = true;
    const expire = (): void => {
      onTimeout();
      exit();
    };
    setTimeout(expire, timeoutMs).unref();
    resolve(signal);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return promise;
}
