// What clients send to the data plane: JSON bodies, queries, messages on the WebSocket. Everything is bounded here; what it means
// is up to the routes.
import { InvalidInput } from '../../base/domain-error.ts';
import { readJsonBody } from '../../base/http/json-body.ts';
import type { Exchange } from '../../base/http/http-server.ts';
import { type Issue, parseWith, withoutPrototype, z } from '../../base/schema.ts';
import { STRICT } from '../../base/json/json-document.ts';
import type { CommandRequest } from '../agents/command.ts';
import { Refusal } from './data-plane-error.ts';

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_PATH_CHARS = 4096;
const WITHOUT_NUL = /^[^\0]*$/;

const text = (maxChars: number) =>
  z.string().max(maxChars).regex(WITHOUT_NUL, 'Input must not contain U+0000');
const path = text(MAX_PATH_CHARS).min(1);
const environment = withoutPrototype(
  z.record(
    z.string().regex(/^[^=\0]+$/, "Names of variables must not be empty or contain '=' or U+0000"),
    text(131_072),
  ),
);
const seconds = z.number().int().min(-1).max(31_536_000);
const runConfig = z.object({
  user: z.string().max(256).nullish(),
  work_dir: path.nullish(),
  env_vars: environment.nullish(),
});
const command = {
  command: text(MAX_BODY_BYTES),
  shell: path.default('/bin/bash'),
  env: environment.nullish(),
  cwd: path.nullish(),
  run_config: runConfig.nullish(),
};
export const commandId = z
  .string()
  .regex(/^[\w.:-]{1,128}$/, "Input must have 1 to 128 letters, digits, '_', '.', ':' or '-'");

export const executeBody = z.object({ ...command, timeout: seconds.default(60) });
export const globBody = z.object({
  pattern: text(MAX_PATH_CHARS).min(1),
  path,
  limit: z.number().int().min(1).max(10_000).default(1000),
});
export const grepBody = z.object({
  pattern: z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[^\0\n]*$/, 'Input must not contain U+0000 or a line break'),
  path,
  glob: text(MAX_PATH_CHARS).min(1).nullish(),
  limit: z.number().int().min(1).max(10_000).default(1000),
});

const offset = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(0);

/** The first message. */
export const openingMessage = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('execute'),
    ...command,
    timeout_seconds: seconds.default(60),
    idle_timeout_seconds: seconds.default(300),
    ttl_seconds: seconds.default(600),
    kill_on_disconnect: z.boolean().default(false),
    close_stdin: z.boolean().default(false),
    command_id: commandId.nullish(),
    pty: z.boolean().default(false),
  }),
  z.object({
    type: z.literal('reconnect'),
    command_id: commandId,
    stdout_offset: offset,
    stderr_offset: offset,
  }),
]);

/** Those that follow. */
export const controlMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('input'), data: z.string() }),
  z.object({ type: z.literal('close_stdin') }),
  z.object({ type: z.literal('kill') }),
]);

export type ExecuteMessage = Extract<z.infer<typeof openingMessage>, { readonly type: 'execute' }>;

/** Throws InvalidInput with locations in the body, and what the body throws. */
export async function readBody<T>({ head, body }: Exchange, schema: z.ZodType<T>): Promise<T> {
  const [type = ''] = head.values('content-type');
  if (!/^application\/json[ \t]*(?:;|$)/i.test(type))
    throw new Refusal(415, 'InvalidRequest', 'Send a JSON body, with Content-Type: application/json');
  const pieces = await body.collect(MAX_BODY_BYTES);
  const read = await readJsonBody(pieces, { ...STRICT, isStorable: false, ignoresBom: false });
  if (!read.ok) throw invalid([{ loc: ['body'], msg: read.msg, type: 'json_invalid' }]);
  const parsed = parseWith(schema, read.value, ['body']);
  if (!parsed.ok) throw invalid(parsed.issues);
  return parsed.value;
}

export function readPath(query: URLSearchParams): string {
  const parsed = parseWith(path, query.get('path') ?? undefined, ['query', 'path']);
  if (!parsed.ok) throw invalid(parsed.issues);
  return parsed.value;
}

/** What a command runs with, from either spelling. Throws a Refusal. */
export function toCommandRequest(
  input: Pick<ExecuteMessage, 'command' | 'shell' | 'env' | 'cwd' | 'run_config'>,
  limits: Omit<CommandRequest, 'command' | 'shell' | 'env' | 'cwd'>,
): CommandRequest {
  const { command, shell, env, cwd, run_config: config } = input;
  if (config && (env || cwd))
    throw new Refusal(
      400,
      'InvalidRequest',
      'Send run_config.env_vars and run_config.work_dir in place of env and cwd, not both',
    );
  if (config?.user)
    throw new Refusal(
      501,
      'NotSupported',
      'Commands run as the only user of the sandbox: omit run_config.user',
    );
  return {
    command,
    shell,
    env: env ?? config?.env_vars ?? {},
    cwd: cwd ?? config?.work_dir ?? undefined,
    ...limits,
  };
}

/** None for 0 and -1. */
export function toMs(seconds: number): number | undefined {
  return seconds <= 0 ? undefined : seconds * 1000;
}

/** Clients read the field from an issue with this type. */
function invalid(issues: readonly Issue[]): InvalidInput {
  return new InvalidInput(issues.map((issue) => ({ ...issue, type: 'value_error' as const })));
}
