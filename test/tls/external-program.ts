// The programs that verify our certificates and whose hellos we read: openssl, python3, curl. They must be
// there: a test that skips itself proves nothing.
import { type Finished, runToEnd, type SpawnOptions } from '../support/spawned-process.ts';

/** Runs a program to its end; one that is missing or fails ends the test with its output. */
export async function runProgram(
  program: 'openssl' | 'python3' | 'curl',
  args: readonly string[],
  options?: SpawnOptions,
): Promise<string> {
  const { code, stdout, stderr } = await runIfPresent(program, args, options);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}\n${stdout}\n${stderr}`);
  return stdout;
}

/** As runProgram, for one that is meant to be cut off. */
export async function runIfPresent(
  program: 'openssl' | 'python3' | 'curl',
  args: readonly string[],
  options?: SpawnOptions,
): Promise<Finished> {
  try {
    return await runToEnd(program, args, options);
  } catch (cause) {
    throw new Error(`${program} cannot be started; install it to run these tests`, { cause });
  }
}
