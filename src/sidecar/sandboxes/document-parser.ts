// Parses a proxy_config without holding up the event loop, which serves every sandbox: a small one at once, a large one in
// a thread of its own. The thread is started when it is first needed and ended when it is idle. A thread that dies changes
// nothing; the next document starts another one.
import { Worker } from 'node:worker_threads';
import { describeBug, type Log } from '../../base/log.ts';
import { WorkQueue } from '../../base/work-queue.ts';
import {
  type ParsedProxyConfig,
  type ParseOptions,
  parseProxyConfig,
} from '../../policy/document/proxy-config.ts';
import { fromSentValues, opaqueValues, withValues } from './config-transfer.ts';
import type { ParserJob, ParserResult } from './parser-worker.ts';

export type DocumentParserOptions = {
  readonly log: Log;
  /** The program of the thread. */
  readonly program?: URL;
  /** How long one document may take. */
  readonly jobMs?: number;
  /** How long an idle thread is kept. */
  readonly idleMs?: number;
};

// In the bundle too the program is a file beside this one.
const PROGRAM = new URL(`parser-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

// As text, with what it replaces. Up to here parsing takes a few milliseconds.
const SMALL_CHARS = 4_096;

// Many times what the largest document needs.
const MEMORY = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 16 };

export class DocumentParser {
  readonly #options: Required<DocumentParserOptions>;
  readonly #queue = new WorkQueue();
  #thread: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor({ log, program = PROGRAM, jobMs = 10_000, idleMs = 10_000 }: DocumentParserOptions) {
    this.#options = { log, program, jobMs, idleMs };
  }

  /** The result of parseProxyConfig. Undefined: the thread died, or took too long. */
  async proxyConfig(document: unknown, options: ParseOptions): Promise<ParsedProxyConfig | undefined> {
    // As text, which takes less time than a clone. A Secret in it is `[secret]`.
    const job = JSON.stringify({ document, options } satisfies ParserJob);
    if (job.length <= SMALL_CHARS) return parseProxyConfig(document, options);
    const text = await this.#queue.run(() => this.#ask(job));
    if (text === undefined) return undefined;
    const result: ParserResult = JSON.parse(text);
    if (!result.ok) return result;
    const { stored } = options;
    const kept = stored === undefined ? [] : opaqueValues(stored);
    const value = withValues(result.config, fromSentValues(result.values, kept));
    return { ok: true, value, warnings: result.warnings };
  }

  /** One job at a time, so that a result belongs to the job before it. */
  async #ask(job: string): Promise<string | undefined> {
    const { log, jobMs, idleMs } = this.#options;
    clearTimeout(this.#idle);
    try {
      this.#thread ??= this.#start();
      const result = await resultOf(this.#thread, job, jobMs);
      this.#idle = setTimeout(() => this.#end(), idleMs).unref();
      return result;
    } catch (error) {
      log.error(describeBug(error), 'the thread that parses documents ended');
      this.#end();
      return undefined;
    }
  }

  #start(): Worker {
    // Nothing of the environment or of the flags: a preload of the process has no business there.
    const options = { env: {}, execArgv: [], argv: [], resourceLimits: MEMORY };
    const thread = new Worker(this.#options.program, options);
    // It must not keep a process alive that has nothing else to do.
    thread.unref();
    // An error without a listener would end the process; resultOf reports those of a job.
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    return thread;
  }

  #end(): void {
    void this.#thread?.terminate();
    this.#thread = undefined;
  }
}

/** Rejects if the thread ends before it responds, or does not respond in time. */
async function resultOf(thread: Worker, job: string, ms: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const onExit = (): void => reject(new Error('the thread ended'));
  const limit = setTimeout(() => reject(new Error('the thread did not respond in time')), ms);
  thread.once('message', resolve).once('error', reject).once('exit', onExit);
  try {
    thread.postMessage(job);
    return await promise;
  } finally {
    clearTimeout(limit);
    thread.off('message', resolve).off('error', reject).off('exit', onExit);
  }
}
