// One request through the proxy on a connection of its own, and its result as a short text: the status, the code of a
// refusal, whether the response was truncated. Every received byte is collected.
import { randomUUID } from 'node:crypto';
import { headerValues } from '../support/message-reader.ts';
import { WireClient, type WireHead } from '../support/wire-client.ts';

/** More than the spare descriptors of a run. */
const CONCURRENT = 16;

export type Route = {
  readonly port: number;
  readonly caPem: string;
  collect(transcript: string): void;
};

/** `200`, `502 dns_failed`. */
export function codeOf(head: Pick<WireHead, 'status' | 'headers'>): string {
  const [code] = headerValues(head, 'x-sallyport-error');
  return code === undefined ? String(head.status) : `${head.status} ${code}`;
}

/** CONNECT got a status other than 200. */
export class TunnelRefused extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`CONNECT got ${code}`);
    this.code = code;
  }
}

/** A connection into an intercepted tunnel to `authority`. */
export async function openTunnel(route: Route, authority: string): Promise<WireClient> {
  const client = await WireClient.connect(route.port);
  try {
    const head = await client.openTunnel(authority);
    if (head.status !== 200) throw new TunnelRefused(codeOf(head));
    await client.startTls({ ca: route.caPem, name: authority.slice(0, authority.lastIndexOf(':')) });
    return client;
  } catch (error) {
    route.collect(client.transcript);
    await client[Symbol.asyncDispose]();
    throw error;
  }
}

/** The code; `200 cut` for a truncated response, `200 crossed` for the response to another request, `closed` for none. */
export async function fetchCode(route: Route, authority: string, path = '/'): Promise<string> {
  let client: WireClient | undefined;
  try {
    client = await openTunnel(route, authority);
    return await fetchCodeOn(client, authority, path);
  } catch (error) {
    return error instanceof TunnelRefused ? error.code : 'closed';
  } finally {
    route.collect(client?.transcript ?? '');
    await client?.[Symbol.asyncDispose]();
  }
}

/** Sends so many requests that a descriptor leak in each would be noticed. Returns the code, or all different codes. */
export async function fetchCodesTogether(route: Route, authority: string): Promise<string> {
  const codes = await Promise.all(Array.from({ length: CONCURRENT }, () => fetchCode(route, authority)));
  return [...new Set(codes)].join(' or ');
}

/** Sends the request on an open connection. */
export async function fetchCodeOn(client: WireClient, authority: string, path = '/'): Promise<string> {
  const nonce = randomUUID();
  try {
    await client.send(`GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nX-Nonce: ${nonce}\r\n\r\n`);
    return await readCode(client, nonce);
  } catch {
    return 'closed';
  }
}

/** The code of the next final response. A 200 must contain the nonce, if one is given. */
export async function readCode(client: WireClient, nonce?: string): Promise<string> {
  let head = await client.readHead();
  while (head.status < 200) head = await client.readHead();
  try {
    const { content } = await client.readBody();
    const isCrossed = head.status === 200 && nonce !== undefined && content.toString() !== nonce;
    return isCrossed ? `${codeOf(head)} crossed` : codeOf(head);
  } catch {
    return `${codeOf(head)} cut`;
  }
}
