// An exception that nothing caught, for tests of parts whose exceptions would end the process.
//
//   using uncaught = watchUncaught();
//   await Promise.race([work, uncaught.thrown]);
export type UncaughtExceptions = Disposable & {
  /** Rejects with the first one. */
  readonly thrown: Promise<never>;
};

export function watchUncaught(): UncaughtExceptions {
  const { promise, reject } = Promise.withResolvers<never>();
  // It may come when nobody awaits it.
  promise.catch(() => undefined);
  process.on('uncaughtExceptionMonitor', reject);
  return {
    thrown: promise,
    [Symbol.dispose]: () => void process.off('uncaughtExceptionMonitor', reject),
  };
}
