// One WebSocket of /execute/ws: starts a command or finds one, sends its output as it comes, and takes input for it. The command
// outlives the connection, unless the client asked otherwise.
import { InvalidInput } from '../../base/domain-error.ts';
import { parseJsonDocument } from '../../base/json/json-document.ts';
import { parseWith, type z } from '../../base/schema.ts';
import { AgentError } from '../agents/agent-error.ts';
import type { BoxAgents } from '../agents/box-agents.ts';
import type { Command, Offsets } from '../agents/command.ts';
import { Refusal } from './data-plane-error.ts';
import {
  controlMessage,
  type ExecuteMessage,
  openingMessage,
  toCommandRequest,
  toMs,
} from './request-input.ts';
import type { SendBudget } from './send-budget.ts';
import type { Socket, SocketEvents } from './web-socket.ts';

const NORMAL = 1000;
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;
const INTERNAL_ERROR = 1011;
const OPENING_MS = 30_000;
/** Input that the command has not taken yet; then the client has to wait. */
const MAX_INPUT_BYTES = 256 * 1024;

/** How long a client that is asked to connect again may take to read what was sent before. */
const LEAVE_MS = 5_000;

type ErrorType = 'CommandTimeout' | 'CommandNotFound' | 'SessionExpired' | 'CommandError';
export type ExecuteSocketOptions = {
  readonly agents: BoxAgents;
  readonly budget: SendBudget;
  onBug(error: unknown): void;
};
type Opened = { readonly id: string; readonly command: Command; readonly from: Offsets };

export class ExecuteSocket implements SocketEvents {
  readonly #agents: BoxAgents;
  readonly #budget: SendBudget;
  readonly box: string;
  readonly #socket: Socket;
  readonly #left: AbortController = new AbortController();
  readonly #opening: NodeJS.Timeout;
  readonly #onBug: (error: unknown) => void;
  #command: Command | undefined;
  #input: Promise<void> = Promise.resolve();
  #inputBytes = 0;

  constructor(box: string, socket: Socket, { agents, budget, onBug }: ExecuteSocketOptions) {
    this.#agents = agents;
    this.#budget = budget;
    this.box = box;
    this.#socket = socket;
    this.#onBug = onBug;
    this.#opening = setTimeout(() => socket.close(POLICY_VIOLATION), OPENING_MS).unref();
  }

  onText(text: string): void {
    if (this.#left.signal.aborted) return;
    try {
      if (this.#command === undefined) this.#open(text);
      else this.#control(this.#command, text);
    } catch (error) {
      this.#fail(error);
    }
  }

  onClose(): void {
    clearTimeout(this.#opening);
    this.#left.abort();
    this.#budget.remove(this);
  }

  /** This process ends, or the client reads too slowly: it is asked to connect again. */
  leave(): void {
    this.#socket.close(GOING_AWAY);
    this.#left.abort();
    setTimeout(() => this.#socket.terminate(), LEAVE_MS).unref();
  }

  #open(text: string): void {
    clearTimeout(this.#opening);
    const message = parse(openingMessage, text);
    const opened = message.type === 'execute' ? this.#start(message) : this.#find(message);
    if (opened === undefined) return;
    this.#command = opened.command;
    this.#follow(opened).catch((error: unknown) => this.#fail(error));
  }

  #start(message: ExecuteMessage): Opened {
    if (message.pty) throw new Refusal(501, 'NotSupported', 'pty is not supported');
    const request = toCommandRequest(message, {
      stdin: !message.close_stdin,
      timeoutMs: toMs(message.timeout_seconds),
      idleMs: toMs(message.idle_timeout_seconds),
      killOnDisconnect: message.kill_on_disconnect,
    });
    const { ttl_seconds: ttl } = message;
    const table = this.#agents.commands(this.box);
    const [id, command] = table.start(
      request,
      message.command_id ?? undefined,
      ttl < 0 ? undefined : ttl * 1000,
    );
    return { id, command, from: { stdout: 0, stderr: 0 } };
  }

  #find(
    message: Extract<z.infer<typeof openingMessage>, { readonly type: 'reconnect' }>,
  ): Opened | undefined {
    const id = message.command_id;
    const found = this.#agents.commands(this.box).find(id);
    if (found.kind === 'found') {
      const from = { stdout: message.stdout_offset, stderr: message.stderr_offset };
      requireKept(from, found.command.oldest);
      return { id, command: found.command, from };
    }
    if (found.kind === 'expired')
      this.#sendError('SessionExpired', 'The output of this command is no longer kept');
    else this.#sendError('CommandNotFound', 'There is no command with this id');
    return undefined;
  }

  async #follow({ id, command, from }: Opened): Promise<void> {
    const { pid } = await command.started;
    await this.#send({ type: 'started', command_id: id, pid });
    for await (const { stream, text, offset } of command.follow(from, this.#left.signal))
      await this.#send({ type: stream, data: text, offset });
    if (this.#left.signal.aborted) return;
    const outcome = await command.ended;
    if (outcome.kind === 'error') throw outcome.error;
    if (outcome.kind === 'timeout')
      return this.#sendError('CommandTimeout', 'The command did not end in time');
    await this.#send({ type: 'exit', exit_code: outcome.exitCode });
    this.#socket.close(NORMAL);
  }

  #control(command: Command, text: string): void {
    const message = parse(controlMessage, text);
    if (message.type === 'kill') return command.kill();
    if (message.type === 'close_stdin') {
      this.#input = this.#input.then(() => command.closeInput());
      return;
    }
    const bytes = Buffer.from(message.data);
    this.#inputBytes += bytes.length;
    if (this.#inputBytes > MAX_INPUT_BYTES) this.#socket.pause();
    this.#input = this.#input
      .then(() => command.write(bytes))
      .then(() => {
        this.#inputBytes -= bytes.length;
        if (this.#inputBytes <= MAX_INPUT_BYTES) this.#socket.resume();
      });
  }

  async #send(message: object): Promise<void> {
    const sent = this.#socket.send(JSON.stringify(message), () => this.#count());
    this.#count();
    await sent;
  }

  #count(): void {
    if (!this.#left.signal.aborted) this.#budget.set(this, this.#socket.bufferedBytes);
  }

  #sendError(type: ErrorType, error: string, code: number = NORMAL): void {
    void this.#send({ type: 'error', error_type: type, error });
    this.#socket.close(code);
    this.#left.abort();
  }

  #fail(error: unknown): void {
    if (error instanceof AgentError || error instanceof Refusal)
      return this.#sendError('CommandError', error.message);
    if (error instanceof InvalidInput) {
      const texts = error.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
      return this.#sendError('CommandError', texts.slice(0, 5).join('; '), POLICY_VIOLATION);
    }
    this.#onBug(error);
    this.#socket.close(INTERNAL_ERROR);
    this.#left.abort();
  }
}

/** A client that gets the rest without what is missing would take it for the whole output. Throws a Refusal. */
function requireKept(from: Offsets, oldest: Offsets): void {
  for (const stream of ['stdout', 'stderr'] as const)
    if (from[stream] < oldest[stream])
      throw new Refusal(
        409,
        'OutputLost',
        `The output of ${stream} from offset ${from[stream]} on is no longer kept: connect with ${stream}_offset ${oldest[stream]} for the rest`,
      );
}

/** Throws InvalidInput. */
function parse<T>(schema: z.ZodType<T>, text: string): T {
  const document = parseJsonDocument(text);
  if (!document.ok)
    throw new InvalidInput([
      { loc: ['message'], msg: 'The message is not valid JSON', type: 'json_invalid' },
    ]);
  const parsed = parseWith(schema, document.value, ['message']);
  if (!parsed.ok) throw new InvalidInput(parsed.issues);
  return parsed.value;
}
