// What `sallyport platform init` does for sandboxes. It never fails: the first sandbox makes what is missing.
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { PlatformConfig } from '../../platform/config.ts';

/** Writes to standard error. Returns the exit code: 0, or that of the signal that came meanwhile. */
export async function prepareSandboxes(
  { sandboxes: { runtime }, dataDirectory }: Pick<PlatformConfig, 'sandboxes' | 'dataDirectory'>,
  isRepeated: boolean,
): Promise<number> {
  if (runtime !== 'auto' && runtime !== 'bubblewrap') return 0;
  const directory = join(dataDirectory, 'box-host');
  // A script may run `init` with every start.
  if (isRepeated && existsSync(join(directory, 'bubblewrap', 'snapshots', 'base'))) return 0;
  if (!isOwn(dataDirectory)) {
    say([`Sandboxes are prepared with the first one: ${dataDirectory} is not a directory of this user`]);
    return 0;
  }
  const stopping = noteSignals();
  try {
    const { describePrepared, prepareMachine } = await import('../../box-host/preparation.ts');
    say(describePrepared(await prepareMachine(directory), runtime));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    say([`Sandboxes are prepared with the first one, because it is not possible now: ${reason}`]);
  } finally {
    stopping.end();
  }
  return stopping.code();
}

/** Otherwise files of this user would keep the box host of another one from its directory. */
function isOwn(directory: string): boolean {
  const found = statSync(directory, { throwIfNoEntry: false });
  return found !== undefined && found.isDirectory() && found.uid === (process.getuid?.() ?? found.uid);
}

/** What was begun takes a second or two, and cleans up after itself. A second signal ends the process at once. */
function noteSignals() {
  let code = 0;
  const onTerm = (): void => void (code = 143);
  const onInterrupt = (): void => void (code = 130);
  process.once('SIGTERM', onTerm);
  process.once('SIGINT', onInterrupt);
  return {
    code: (): number => code,
    end(): void {
      process.off('SIGTERM', onTerm);
      process.off('SIGINT', onInterrupt);
    },
  };
}

function say(lines: readonly string[]): void {
  process.stderr.write(`${lines.join('\n')}\n`);
}
