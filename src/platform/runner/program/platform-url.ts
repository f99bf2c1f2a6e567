// Where a runner reaches the API of its platform, which it sends the runs of deployments to. Pure.
import type { PlatformConfig } from '../../config.ts';

/** Of those that mean every address of the machine. */
const WILDCARDS: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

/** A platform that starts its runner tells it by the setting. */
export function platformUrlOf({
  runner,
  listen,
}: Pick<PlatformConfig, 'listen'> & {
  readonly runner: Pick<PlatformConfig['runner'], 'platformUrl'>;
}): string {
  const host = WILDCARDS.get(listen.host) ?? listen.host;
  return runner.platformUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${listen.port}`;
}
