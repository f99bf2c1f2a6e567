// Reads the responses that a client waits for and returns the state of its connection. Trusts every head, as a client does:
// whatever the proxy relays counts.
import { headerValues } from '../../support/message-reader.ts';
import type { WireClient, WireHead } from '../../support/wire-client.ts';
import type { ClientEnd } from './origin-script.ts';

export type Reading = {
  readonly reads: number;
  /** The methods of the requests, in order: a response to HEAD has no body. */
  readonly methods: readonly string[];
  readonly leavesAfter: number | undefined;
};

/** `bytes`: the length of the responses in the transcript, or of the whole transcript if the connection ended. */
export async function readResponses(
  client: WireClient,
  { reads, methods, leavesAfter }: Reading,
): Promise<{ readonly end: ClientEnd; readonly bytes: number }> {
  const from = client.transcript.length;
  if (leavesAfter !== undefined) return leaveAfter(client, leavesAfter);
  let isLast = false;
  try {
    for (let i = 0; i < reads && !isLast; i += 1) isLast = await readResponse(client, methods[i] ?? 'GET');
  } catch {
    return { end: 'cut', bytes: client.transcript.length - from };
  }
  if (!isLast) return { end: 'open', bytes: client.transcript.length - from };
  await client.readToEnd();
  const end = (await client.finished) === 'end' ? 'ended' : 'cut';
  return { end, bytes: client.transcript.length - from };
}

/** True if the connection closes after this response. */
async function readResponse(client: WireClient, method: string): Promise<boolean> {
  let head = await client.readHead();
  while (head.status >= 100 && head.status < 200 && head.status !== 101) head = await client.readHead();
  if (head.status === 101) return true;
  if (method !== 'HEAD' && head.status !== 204 && head.status !== 304) {
    const { framing } = await client.readBody();
    if (framing === 'until_close') return true;
  }
  return announcesEnd(head);
}

function announcesEnd(head: WireHead): boolean {
  return headerValues(head, 'connection').some((value) => value.toLowerCase() === 'close');
}

async function leaveAfter(client: WireClient, count: number): Promise<{ end: ClientEnd; bytes: number }> {
  for (let read = 0; read < count; ) {
    const piece = await client.readSome();
    if (piece === undefined) break;
    read += piece.length;
  }
  client.reset();
  return { end: 'cut', bytes: count };
}
