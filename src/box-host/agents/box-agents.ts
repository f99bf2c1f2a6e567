// The agents of all boxes of this box host: one is started by the first call to a box, and ended when the box has had no call for
// a while and nothing else runs in it. What has been received of commands outlives it.
import type { Duplex } from 'node:stream';
import { describeBug, type Log } from '../../base/log.ts';
import { SingleFlight } from '../../base/single-flight.ts';
import { AgentChannel, type ChannelLimits, defaultChannelLimits } from './agent-channel.ts';
import { AgentError } from './agent-error.ts';
import type { Command, CommandRequest } from './command.ts';
import { type CommandLimits, CommandTable, defaultCommandLimits, type Found } from './command-table.ts';
import { type BudgetLimits, defaultBudgetLimits, OutputBudget } from './output-budget.ts';

export type BoxAgentsOptions = {
  readonly log: Log;
  /**
   * Starts the agent of a running box and returns its channel. When the channel is destroyed, the agent and all processes of
   * the box must be ended. An AgentError goes to the caller as it is; anything else is logged, and is `unavailable`.
   */
  open(box: string): Promise<Duplex>;
  readonly channelLimits?: ChannelLimits;
  readonly commandLimits?: CommandLimits;
  readonly budgetLimits?: BudgetLimits;
  /** How long a call waits for the agent to start. */
  readonly openMs?: number;
  /** How long an agent without a call is kept. */
  readonly idleMs?: number;
};

type Box = {
  readonly commands: CommandTable;
  channel: AgentChannel | undefined;
  idle: NodeJS.Timeout | undefined;
  /** How often its channel was asked for: one that is about to be used is not ended. */
  uses: number;
};

/** The commands of a box, whether it is known or not. */
export type BoxCommands = {
  start(
    request: CommandRequest,
    id: string | undefined,
    ttlMs: number | undefined,
  ): readonly [string, Command];
  find(id: string): Found;
};

const IDLE_MS = 60_000;
const OPEN_MS = 30_000;

export class BoxAgents {
  readonly #options: BoxAgentsOptions;
  readonly #boxes: Map<string, Box> = new Map();
  readonly #opening: SingleFlight<AgentChannel> = new SingleFlight();
  readonly #budget: OutputBudget;
  #isClosed = false;

  constructor(options: BoxAgentsOptions) {
    this.#options = options;
    this.#budget = new OutputBudget(options.budgetLimits ?? defaultBudgetLimits);
  }

  /** Boxes of which something is held. */
  get size(): number {
    return this.#boxes.size;
  }

  /** The channel to the box's agent. Rejects with an AgentError. */
  async channel(box: string): Promise<AgentChannel> {
    const known = this.#boxes.get(box);
    if (known?.channel === undefined || known.channel.isClosed)
      return this.#inTime(this.#opening.run(box, () => this.#openChannel(box)));
    known.uses += 1;
    return known.channel;
  }

  /** A question about a box that is not known, such as one that was removed, leaves nothing behind. */
  commands(box: string): BoxCommands {
    return {
      start: (request, id, ttlMs) => this.#box(box).commands.start(request, id, ttlMs),
      find: (id) => this.#boxes.get(box)?.commands.find(id) ?? { kind: 'unknown' },
    };
  }

  /** The box is stopped or removed: its agent ends, its calls fail, and its output is forgotten. */
  async stop(box: string): Promise<void> {
    const known = this.#boxes.get(box);
    this.#boxes.delete(box);
    clearTimeout(known?.idle);
    known?.channel?.close('stopped');
    known?.commands.clear();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#boxes.keys()].map((box) => this.stop(box)));
  }

  #box(id: string): Box {
    const known = this.#boxes.get(id);
    if (known !== undefined) return known;
    const { commandLimits = defaultCommandLimits } = this.#options;
    const commands = new CommandTable(() => this.channel(id), commandLimits, this.#budget);
    const box: Box = { commands, channel: undefined, idle: undefined, uses: 0 };
    this.#boxes.set(id, box);
    return box;
  }

  async #openChannel(id: string): Promise<AgentChannel> {
    const box = this.#box(id);
    const stream = await this.#open(id).catch((error: AgentError) => {
      // Who calls a box that does not run must not make it known: nobody would stop it again.
      if (error.kind === 'stopped' && this.#boxes.get(id) === box) void this.stop(id);
      throw error;
    });
    // It was stopped meanwhile.
    if (this.#isClosed || this.#boxes.get(id) !== box) {
      stream.destroy();
      throw new AgentError('stopped');
    }
    const channel = new AgentChannel(stream, this.#options.channelLimits ?? defaultChannelLimits);
    box.channel = channel;
    channel.onIdle = () => this.#awaitIdle(box, channel);
    void channel.closed.then(({ kind }) => {
      clearTimeout(box.idle);
      if (kind !== 'stopped') this.#options.log.warn({ box: id, reason: kind }, 'box agent ended');
    });
    this.#awaitIdle(box, channel);
    return channel;
  }

  async #open(id: string): Promise<Duplex> {
    try {
      return await this.#options.open(id);
    } catch (error) {
      if (error instanceof AgentError) throw error;
      this.#options.log.error({ ...describeBug(error), box: id }, 'box agent not started');
      throw new AgentError('unavailable');
    }
  }

  /** A start that takes longer goes on, for a later call: two agents of one box must not be started. */
  async #inTime(channel: Promise<AgentChannel>): Promise<AgentChannel> {
    const late = Promise.withResolvers<never>();
    const { openMs = OPEN_MS } = this.#options;
    const timer = setTimeout(() => late.reject(new AgentError('unavailable')), openMs).unref();
    channel.catch(() => undefined);
    try {
      return await Promise.race([channel, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #awaitIdle(box: Box, channel: AgentChannel): void {
    clearTimeout(box.idle);
    const { idleMs = IDLE_MS } = this.#options;
    box.idle = setTimeout(() => void this.#endIdle(box, channel), idleMs).unref();
  }

  /** The agent says whether processes live: one that lies about it keeps itself running, within the limits of its box. */
  async #endIdle(box: Box, channel: AgentChannel): Promise<void> {
    if (!channel.isIdle || channel.isClosed) return;
    const { uses } = box;
    const isUsed = await channel.hasOtherProcesses();
    if (!channel.isIdle || channel.isClosed) return;
    if (isUsed || box.uses !== uses) this.#awaitIdle(box, channel);
    else channel.close('stopped');
  }
}
