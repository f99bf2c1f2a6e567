// An agent in this process, whose methods a test writes; and raw frames, for one that breaks the protocol.
import { duplexPair } from 'node:stream';
import type { Duplex } from 'node:stream';
import { type Methods, serveAgent } from '../../../src/box-agent/agent.ts';
import { encodeFrameHead, type FrameType } from '../../../src/box-agent/protocol/frame.ts';

const unused = async (): Promise<object> => ({});
const nothing: Methods = {
  execute: unused,
  read: unused,
  write: unused,
  glob: unused,
  grep: unused,
  connect: unused,
};

export type FakeAgent = { readonly stream: Duplex; readonly served: Promise<void> };

export function createFakeAgent(
  methods: Partial<Methods>,
  hasOtherProcesses: () => boolean = () => false,
): FakeAgent {
  const [inside, stream] = duplexPair();
  const served = serveAgent(inside, { methods: { ...nothing, ...methods }, hasOtherProcesses });
  return { stream, served };
}

export function rawFrame(type: FrameType, id: number, payload: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(payload);
  return Buffer.concat([encodeFrameHead(type, id, bytes.length), bytes]);
}
