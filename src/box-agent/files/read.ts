// Reads a range of one regular file. The head says what the opened file is; the caller then names the range, so that what was
// decided by the head and what is sent are of the same file.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { RunMethod } from '../agent.ts';
import type { AgentCall } from '../agent-call.ts';
import { CallError } from '../call-error.ts';
import { MAX_DATA_BYTES } from '../protocol/frame.ts';
import { decodeRange, type FileStat } from '../protocol/messages.ts';

export const read: RunMethod<'read'> = async (call, { path }) => {
  // A pipe without a writer would wait for one.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    await call.sendHead(await statOf(file));
    for await (const piece of call.input()) {
      const { offset, length } = decodeRange(piece);
      await sendRange(call, file, offset, length);
      break;
    }
    return {};
  } finally {
    await file.close();
  }
};

async function statOf(file: FileHandle): Promise<FileStat> {
  const stat = await file.stat({ bigint: true });
  if (!stat.isFile()) throw new CallError('NOT_A_FILE');
  const version = [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs];
  return {
    size: Number(stat.size),
    mtimeMs: Number(stat.mtimeMs),
    version: version.map((part) => part.toString(16)).join('-'),
  };
}

async function sendRange(call: AgentCall, file: FileHandle, offset: number, length: number): Promise<void> {
  for (let sent = 0; sent < length; ) {
    const wanted = Math.min(MAX_DATA_BYTES, length - sent);
    // Sent without a copy, so it cannot be used again.
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, offset + sent);
    if (bytesRead === 0) throw new CallError('SHORT_FILE');
    await call.sendData('data', buffer.subarray(0, bytesRead));
    sent += bytesRead;
  }
}
