// Fuzz target: what an agent sends reads alike whole and in any pieces, no frame exceeds its limits, and a channel that gets it
// ends or goes on, but never throws and never takes more than was granted. Input: how the bytes are split, then the bytes.
import assert from 'node:assert/strict';
import { WINDOW_BYTES } from '../../../src/box-agent/protocol/credit.ts';
import { type Frame, FrameReader, FROM_AGENT, ProtocolError } from '../../../src/box-agent/protocol/frame.ts';
import { parseEnded, parseStarted } from '../../../src/box-agent/protocol/messages.ts';
import { RunningCall } from '../../../src/box-host/agents/running-call.ts';
import { split } from '../split.ts';

type Reading = { readonly frames: readonly Frame[]; readonly isRejected: boolean };

export function fuzz(data: Buffer): void {
  const { whole, pieces } = split(data);
  const reading = readAll([whole]);
  assert.deepEqual(readAll(pieces), reading);
  for (const { type, payload } of reading.frames) {
    const [min, max] = FROM_AGENT[type] ?? assert.fail('a type that an agent does not send');
    assert(payload.length >= min && payload.length <= max);
  }
  receiveAll(reading.frames);
}

function readAll(pieces: readonly Buffer[]): Reading {
  const reader = new FrameReader(FROM_AGENT);
  const frames: Frame[] = [];
  try {
    for (const piece of pieces)
      for (const { type, id, payload } of reader.read(piece))
        frames.push({ type, id, payload: Buffer.from(payload) });
  } catch (error) {
    assert(error instanceof ProtocolError);
    return { frames, isRejected: true };
  }
  return { frames, isRejected: false };
}

/** All of them for one call, which grants nothing. */
function receiveAll(frames: readonly Frame[]): void {
  let bytes = 0;
  const call = new RunningCall(
    {
      parseHead: parseStarted,
      parseResult: parseEnded,
      onData: (_, piece) => (bytes += piece.length),
    },
    async () => undefined,
  );
  try {
    for (const frame of frames) if (call.receive(frame)) break;
  } catch (error) {
    assert(error instanceof ProtocolError);
  }
  assert(bytes <= WINDOW_BYTES, 'more bytes than were granted');
}
