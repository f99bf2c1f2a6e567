// What a parent process hands over on a descriptor: read to its end before anything else is opened or started, then closed, so that no
// child inherits it. Errors name the variable, never what was read.
import { closeSync, readSync } from 'node:fs';
import { InputError } from '../../base/input-error.ts';
import { errorCode } from '../../base/log.ts';

export type InputDescriptor = {
  /** It names the descriptor. */
  readonly variable: string;
  readonly maxBytes: number;
};

const CHUNK_BYTES = 65_536;

/** Undefined where the variable is not set. Throws an InputError. */
export function readInputDescriptor(
  env: NodeJS.ProcessEnv,
  { variable, maxBytes }: InputDescriptor,
): string | undefined {
  const given = env[variable];
  if (given === undefined || given === '') return undefined;
  const descriptor = /^\d{1,4}$/.test(given) ? Number(given) : 0;
  // The first three are those of the terminal or of the log.
  if (descriptor < 3) throw new InputError(`${variable} must be the number of a descriptor, from 3 on`);
  const bytes = readToEnd(descriptor, { variable, maxBytes });
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new InputError(`${variable}: what was read is not UTF-8`);
  }
}

function readToEnd(descriptor: number, { variable, maxBytes }: InputDescriptor): Buffer {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for (let read = -1; read !== 0 && length <= maxBytes; length += read) {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      read = readSync(descriptor, chunk);
      chunks.push(chunk.subarray(0, read));
    }
    closeSync(descriptor);
  } catch (error) {
    throw new InputError(
      `${variable}: descriptor ${descriptor} cannot be read (${errorCode(error) ?? 'failed'})`,
    );
  }
  if (length > maxBytes) throw new InputError(`${variable}: more than ${maxBytes} bytes were sent`);
  return Buffer.concat(chunks);
}
