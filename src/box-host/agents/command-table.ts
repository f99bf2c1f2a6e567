// The commands of one box by their ids: those that run, and for a while those that have ended, so that a client that lost its
// connection gets the rest of the output. Bounded in number and in bytes; the oldest that has ended goes first.
import { randomUUID } from 'node:crypto';
import type { AgentChannel } from './agent-channel.ts';
import { AgentError } from './agent-error.ts';
import { Command, type CommandRequest } from './command.ts';
import { OutputBudget, type OutputShare } from './output-budget.ts';

export type CommandLimits = {
  readonly running: number;
  readonly ended: number;
  /** Of each output of a command. */
  readonly ringBytes: number;
  /** Of the output of all commands that have ended. */
  readonly endedBytes: number;
  /** How long output waits for a client whose connection broke. */
  readonly holdMs: number;
};

export const defaultCommandLimits: CommandLimits = {
  running: 16,
  ended: 64,
  ringBytes: 1024 * 1024,
  endedBytes: 16 * 1024 * 1024,
  // Longer than a platform starts again, and than clients wait before they connect again.
  holdMs: 30_000,
};

/** Ids of commands that are gone, so that a client learns that it came too late. */
const MAX_EXPIRED = 256;

export type Found =
  | { readonly kind: 'found'; readonly command: Command }
  | { readonly kind: 'expired' | 'unknown' };

export class CommandTable {
  readonly #limits: CommandLimits;
  readonly #open: () => Promise<AgentChannel>;
  readonly #commands: Map<string, Command> = new Map();
  readonly #timers: Map<string, NodeJS.Timeout> = new Map();
  readonly #expired: Set<string> = new Set();
  readonly #share: OutputShare;

  /** `budget` is that of all boxes. */
  constructor(
    open: () => Promise<AgentChannel>,
    limits: CommandLimits = defaultCommandLimits,
    budget: OutputBudget = new OutputBudget(),
  ) {
    this.#open = open;
    this.#limits = limits;
    this.#share = budget.createShare((asking) => this.#reclaim(asking));
  }

  /**
   * Starts a command, or returns the one that has the id: clients repeat a request whose response they did not get. Throws an
   * AgentError where too many run. `ttlMs` undefined keeps it as long as there is space.
   */
  start(
    request: CommandRequest,
    id: string | undefined,
    ttlMs: number | undefined,
  ): readonly [string, Command] {
    const own = id ?? randomUUID();
    const known = this.#commands.get(own);
    if (known !== undefined) return [own, known];
    const running = [...this.#commands.values()].filter((command) => command.isRunning);
    if (running.length >= this.#limits.running) throw new AgentError('busy');
    const command = new Command(request, this.#limits.ringBytes, this.#share, this.#limits.holdMs);
    this.#commands.set(own, command);
    void command.run(this.#open);
    void command.ended.then(() => this.#onEnded(own, command, ttlMs));
    return [own, command];
  }

  find(id: string): Found {
    const command = this.#commands.get(id);
    if (command !== undefined) return { kind: 'found', command };
    return { kind: this.#expired.has(id) ? 'expired' : 'unknown' };
  }

  /** Forgets everything; what runs ends with the channel. */
  clear(): void {
    for (const id of this.#commands.keys()) this.#remove(id);
    this.#share.close();
  }

  /** Memory for another command or another box: of what ended, the oldest goes; of what runs, that which nobody follows. */
  #reclaim(asking: unknown): boolean {
    for (const [id, command] of this.#commands) {
      if (command.isRunning || command.isFollowed) continue;
      this.#remove(id);
      return true;
    }
    const bySize = [...this.#commands.values()].toSorted(
      (a, b) => Number(a.isFollowed) - Number(b.isFollowed) || b.allocated - a.allocated,
    );
    for (const command of bySize) {
      if (command === asking) return false;
      if (command.shrink()) return true;
    }
    return false;
  }

  #onEnded(id: string, command: Command, ttlMs: number | undefined): void {
    if (this.#commands.get(id) !== command) return;
    // Behind all that ended before.
    this.#commands.delete(id);
    this.#commands.set(id, command);
    if (ttlMs !== undefined)
      this.#timers.set(id, setTimeout(() => this.#remove(id), Math.min(ttlMs, MAX_TTL_MS)).unref());
    const ended = [...this.#commands].filter(([, { isRunning }]) => !isRunning);
    let bytes = ended.reduce((sum, [, { allocated }]) => sum + allocated, 0);
    let count = ended.length;
    for (const [oldest, { allocated }] of ended) {
      if (count <= this.#limits.ended && bytes <= this.#limits.endedBytes) break;
      this.#remove(oldest);
      bytes -= allocated;
      count -= 1;
    }
  }

  #remove(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    this.#commands.get(id)?.forget();
    this.#commands.delete(id);
    this.#expired.add(id);
    for (const oldest of this.#expired) {
      if (this.#expired.size <= MAX_EXPIRED) break;
      this.#expired.delete(oldest);
    }
  }
}

const MAX_TTL_MS = 24 * 3_600_000;
