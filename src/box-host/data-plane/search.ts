// POST /glob and POST /grep. The agent's matches are counted and bounded here too; a search that takes too long returns what it
// has found.
import type { Exchange } from '../../base/http/http-server.ts';
import { type HttpResponse, jsonResponse } from '../../base/http/http-response.ts';
import { ProtocolError } from '../../box-agent/protocol/frame.ts';
import {
  type CallParams,
  parseGlobMatch,
  parseGrepMatch,
  parseSearched,
} from '../../box-agent/protocol/messages.ts';
import { AgentError } from '../agents/agent-error.ts';
import type { BoxAgents } from '../agents/box-agents.ts';
import { openDataCall, readLines } from '../agents/call-data.ts';
import { globBody, grepBody, readBody } from './request-input.ts';

/** Below the time after which clients give up. */
const SEARCH_MS = 50_000;
const MAX_BYTES = 8 * 1024 * 1024;

export async function globFiles(agents: BoxAgents, box: string, exchange: Exchange): Promise<HttpResponse> {
  const { path, pattern, limit } = await readBody(exchange, globBody);
  const found = await search(agents, box, exchange, {
    params: { method: 'glob', path, pattern, limit },
    limit,
    parse: parseGlobMatch,
  });
  const matches = found.matches.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return jsonResponse(200, {
    matches: matches.map(({ path, isDirectory, size, mtimeMs }) => ({
      path,
      is_dir: isDirectory,
      size_bytes: size,
      modified_at: new Date(mtimeMs).toISOString(),
    })),
    truncated: found.truncated,
  });
}

export async function grepFiles(agents: BoxAgents, box: string, exchange: Exchange): Promise<HttpResponse> {
  const { path, pattern, glob, limit } = await readBody(exchange, grepBody);
  const found = await search(agents, box, exchange, {
    params: { method: 'grep', path, pattern, glob: glob ?? null, limit },
    limit,
    parse: parseGrepMatch,
  });
  const matches = found.matches.toSorted((a, b) =>
    a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1,
  );
  return jsonResponse(200, { matches, truncated: found.truncated });
}

type Search<T> = {
  readonly params: CallParams;
  readonly limit: number;
  parse(line: Buffer): T;
};

async function search<T>(
  agents: BoxAgents,
  box: string,
  { left }: Exchange,
  { params, limit, parse }: Search<T>,
): Promise<{ readonly matches: readonly T[]; readonly truncated: boolean }> {
  const channel = await agents.channel(box);
  const { call, data } = openDataCall(channel, params, { parseResult: parseSearched });
  const matches: T[] = [];
  let isCut = false;
  const cut = (): void => {
    isCut = true;
    call.cancel();
  };
  const timer = setTimeout(cut, SEARCH_MS);
  const signal = left();
  signal.addEventListener('abort', cut);
  try {
    let bytes = 0;
    for await (const line of readLines(data())) {
      bytes += line.length;
      if (matches.length === limit) throw new ProtocolError('more matches than were asked for');
      matches.push(parse(line));
      if (bytes > MAX_BYTES) cut();
      if (isCut) break;
    }
    if (isCut) return { matches, truncated: true };
    return { matches, truncated: (await call.result).truncated };
  } catch (error) {
    if (isCut && !(error instanceof AgentError && error.kind !== 'cancelled'))
      return { matches, truncated: true };
    if (!(error instanceof ProtocolError)) throw error;
    channel.close('protocol');
    throw new AgentError('protocol');
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', cut);
    call.cancel();
  }
}
