// POST /execute: runs a command to its end. Its output is held, so that only the last part of a long one is returned; the
// WebSocket has no such limit.
import type { Exchange } from '../../base/http/http-server.ts';
import { type HttpResponse, jsonResponse } from '../../base/http/http-response.ts';
import type { BoxAgents } from '../agents/box-agents.ts';
import { Refusal } from './data-plane-error.ts';
import { executeBody, readBody, toCommandRequest, toMs } from './request-input.ts';

export async function execute(agents: BoxAgents, box: string, exchange: Exchange): Promise<HttpResponse> {
  const body = await readBody(exchange, executeBody);
  const request = toCommandRequest(body, {
    stdin: false,
    timeoutMs: toMs(body.timeout),
    idleMs: undefined,
    killOnDisconnect: false,
  });
  const [, command] = agents.commands(box).start(request, undefined, 0);
  const kill = (): void => command.kill();
  const left = exchange.left();
  left.addEventListener('abort', kill);
  const outcome = await command.ended;
  left.removeEventListener('abort', kill);
  if (outcome.kind === 'error') throw outcome.error;
  if (outcome.kind === 'timeout')
    throw new Refusal(408, 'CommandTimeout', `The command did not end within ${body.timeout} seconds`);
  const [stdout, stderr] = [command.kept('stdout'), command.kept('stderr')];
  return jsonResponse(200, {
    stdout: stdout.text,
    stderr: stderr.text,
    exit_code: outcome.exitCode,
    ...(stdout.isWhole ? {} : { stdout_truncated: true }),
    ...(stderr.isWhole ? {} : { stderr_truncated: true }),
  });
}
