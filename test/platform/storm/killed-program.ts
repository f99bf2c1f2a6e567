// A program that is killed and started again, such as an export worker or a server of objects.
import { type LogRecord, SpawnedProcess } from '../../support/spawned-process.ts';

export type KilledProgram = AsyncDisposable & {
  readonly name: string;
  readonly errors: readonly string[];
  /** Sends SIGKILL, and resolves when the next process is ready. */
  kill(): Promise<LogRecord>;
  /** Sends SIGTERM and waits for the end. */
  end(): Promise<void>;
};

export type KilledProgramOptions = {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  isReady(record: LogRecord): boolean;
};

export async function openKilledProgram({ name, args, env, isReady }: KilledProgramOptions) {
  const errors: string[] = [];
  const start = (): SpawnedProcess =>
    new SpawnedProcess(process.execPath, args, env === undefined ? {} : { env });
  let child = start();
  const ready = await child.record(isReady);
  const readLog = (): void => {
    for (const record of child.records)
      if (record['level'] === 'error' || record['level'] === 'fatal')
        errors.push(`${name} logged ${JSON.stringify(record)}`);
  };
  const program: KilledProgram = {
    ...{ name, errors },
    async kill() {
      child.kill('SIGKILL');
      const { signal } = await child.exited;
      if (signal !== 'SIGKILL') errors.push(`${name} ended before it was killed\n${child.stderr}`);
      readLog();
      child = start();
      return child.record(isReady);
    },
    async end() {
      child.kill('SIGTERM');
      const { code, signal } = await child.exited;
      if (code !== 0) errors.push(`${name} ended with ${code ?? signal} after SIGTERM\n${child.stderr}`);
      readLog();
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
  return { program, ready };
}
