// The load of a storm of agent servers: clients that create runs of all kinds and follow them to their ends, over whatever is
// killed meanwhile. What they got is in the ledger; what they must not get is an error at once.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../../http1/mutation.ts';
import { type AgentClient, type Frame, readFrames } from './agent-client.ts';
import { type AgentLedger, count, type Job } from './agent-ledger.ts';

type Body = Readonly<Record<string, unknown>>;
type Creation = {
  readonly how: string;
  readonly path?: string;
  readonly body?: Body;
  readonly kind?: Job['kind'];
};

const PAUSES_MS = [0, 0, 20, 20, 100, 100, 400];
const DURABILITIES = ['async', 'async', 'sync', 'exit'];
/** Runs that share a thread make its state, and their checks, longer. */
const RUNS_OF_A_THREAD = 12;
const RECENT_THREADS = 6;

export class AgentLoad {
  readonly threads: string[] = [];
  readonly #client: AgentClient;
  readonly #ledger: AgentLedger;
  readonly #random: Random;
  readonly #runs: Map<string, number> = new Map();
  readonly #isOver: () => boolean;

  constructor(client: AgentClient, ledger: AgentLedger, random: Random, isOver: () => boolean) {
    this.#client = client;
    this.#ledger = ledger;
    this.#random = random;
    this.#isOver = isOver;
  }

  async run(): Promise<void> {
    const scenarios = [
      ...[() => this.#follow(false), () => this.#follow(true), () => this.#follow(true)],
      ...[() => this.#wait(), () => this.#background(), () => this.#stateless(), () => this.#stateless()],
      ...[() => this.#enqueue(), () => this.#cancel('interrupt'), () => this.#cancel('rollback')],
      ...[() => this.#compete(), () => this.#ask()],
    ];
    while (!this.#isOver()) await scenarios[this.#random(scenarios.length)]?.();
  }

  async #follow(isResumable: boolean): Promise<void> {
    await this.#stream(isResumable, await this.#thread());
  }

  async #stream(isResumable: boolean, thread: string | undefined): Promise<void> {
    const how = isResumable ? 'resumable stream' : 'stream';
    const body = { stream_mode: ['values', 'updates'], stream_resumable: isResumable };
    const [job, response] = await this.#create(thread, { how, path: 'stream', body });
    if (response === undefined) return;
    const place = response.headers.get('content-location') ?? '';
    if (isResumable) await this.#resume(job, response, response.headers.get('location') ?? '');
    else if (!(await readFrames(response, () => true))) await this.#join(job, place);
  }

  /** Follows it to its end: the ids of all that comes over all connections are 0, 1, 2, … */
  async #resume(job: Job, first: Response, path: string): Promise<void> {
    const frames: Frame[] = [];
    let response: Response | undefined = first;
    let leaveAfter = this.#random(3) === 0 ? this.#random(6) : Number.POSITIVE_INFINITY;
    for (const lateMs = performance.now() + 90_000; ; ) {
      let left = leaveAfter;
      const take = (frame: Frame): boolean => {
        if (frame.id !== frames.length)
          this.#violation(job, `event ${frame.id} (${frame.event}) came after ${frames.length - 1}`);
        frames.push(frame);
        return left-- > 0;
      };
      if (response?.status === 200 && (await readFrames(response, take))) break;
      await response?.body?.cancel().catch(() => undefined);
      if (response?.status === 404) return this.#gone(job, 'its stream');
      if (performance.now() > lateMs) return this.#violation(job, 'its stream has not ended in 90 s');
      leaveAfter = Number.POSITIVE_INFINITY;
      count(this.#ledger, 'streams resumed');
      const headers = { 'last-event-id': String(frames.length - 1) };
      response = await this.#client.send('GET', path, { user: job.user, headers });
    }
    if (frames[0]?.event !== 'metadata') this.#violation(job, `its first event is ${frames[0]?.event}`);
    const last = frames.findLast(({ event }) => event === 'values' || event === 'error');
    if (last !== undefined)
      this.#take(job, last.event === 'error' ? { __error__: JSON.parse(last.data) } : JSON.parse(last.data));
  }

  async #wait(): Promise<void> {
    const [job, response] = await this.#create(await this.#thread(), { how: 'wait', path: 'wait' });
    if (response === undefined) return;
    const text = await response.text().catch(() => undefined);
    const place = response.headers.get('content-location') ?? '';
    if (text === undefined) await this.#join(job, place);
    else this.#take(job, JSON.parse(text));
  }

  async #background(): Promise<void> {
    const created = await this.#create(await this.#thread(), { how: 'background' });
    await this.#joinCreated(created);
  }

  async #joinCreated([job, response]: readonly [Job, Response | undefined]): Promise<void> {
    if (response !== undefined) await this.#join(job, response.headers.get('content-location') ?? '');
  }

  async #stateless(): Promise<void> {
    const what = this.#random(3);
    const keep = this.#random(2) === 0 ? { on_completion: 'keep' } : {};
    if (what === 0) return this.#stream(true, undefined);
    const path = what === 1 ? 'wait' : '';
    const how = `stateless ${path === '' ? 'background' : path}`;
    const [job, response] = await this.#create(undefined, { how, path, body: keep });
    const text = await response?.text().catch(() => undefined);
    const location = response?.headers.get('location') ?? '';
    // As the public clients do with a wait that was cut.
    if (text === undefined && location !== '') return this.#join(job, location.replace(/\/join$/, ''));
    if (text === undefined) return;
    if (path === 'wait') return this.#take(job, JSON.parse(text));
    const { thread_id: threadId, run_id: runId } = JSON.parse(text);
    await this.#join(job, `/threads/${threadId}/runs/${runId}`);
  }

  async #enqueue(): Promise<void> {
    const thread = await this.#thread();
    const creations = Array.from({ length: 3 }, () => this.#create(thread, { how: 'enqueue' }));
    for (const created of await Promise.all(creations)) await this.#joinCreated(created);
  }

  async #cancel(action: 'interrupt' | 'rollback'): Promise<void> {
    const created = await this.#create(await this.#thread(), { how: `background, then ${action}` });
    const [job, response] = created;
    if (response === undefined) return;
    await pause(this.#random(600));
    if (action === 'rollback') job.mayBeGone = true;
    else job.mayBeInterrupted = true;
    const place = response.headers.get('content-location');
    const isWaited = this.#random(2) === 0;
    const { status, text } = await this.#client.ask(
      'POST',
      `${place}/cancel?action=${action}&wait=${isWaited}`,
      job,
    );
    if (![202, 204, 404].includes(status)) this.#violation(job, `its cancel was ${status} ${text}`);
    await this.#joinCreated(created);
  }

  /** A run that does not wait for those which are there. */
  async #compete(): Promise<void> {
    const thread = await this.#thread();
    const first = await this.#create(thread, { how: 'background' });
    await pause(this.#random(300));
    const strategy = ['interrupt', 'rollback', 'reject'][this.#random(3)] ?? 'reject';
    const body = { multitask_strategy: strategy };
    const made = await this.#create(thread, { how: `background, ${strategy}`, body });
    await this.#joinCreated(first);
    await this.#joinCreated(made);
  }

  async #ask(): Promise<void> {
    const thread = await this.#newThread();
    await this.#joinCreated(await this.#create(thread, { how: 'until it asks', kind: 'ask' }));
    for (const lateMs = performance.now() + 90_000; performance.now() < lateMs; await pause(200)) {
      const { text } = await this.#client.ask('GET', `/threads/${thread}`, { user: 'reader' });
      const { status } = JSON.parse(text);
      if (status === 'busy') continue;
      // A creation whose response was lost may have created nothing.
      if (status !== 'interrupted') return;
      return this.#joinCreated(await this.#create(thread, { how: 'resume', kind: 'resume' }));
    }
  }

  /** A creation whose response was lost is not repeated: it has created a run, or none. */
  async #create(
    threadId: string | undefined,
    { how, path = '', body = {}, kind = 'work' }: Creation,
  ): Promise<readonly [Job, Response | undefined]> {
    const name = `j${this.#ledger.jobs.length}`;
    const job: Job = {
      ...{ name, kind, threadId, how, user: `u${this.#random(8)}-${name}`, outcome: 'sent' },
      ...{ mayBeGone: false, mayBeInterrupted: false },
    };
    this.#ledger.jobs.push(job);
    const strategy = body['multitask_strategy'];
    this.#mark(job, strategy);
    const at = `${threadId === undefined ? '' : `/threads/${threadId}`}/runs${path === '' ? '' : `/${path}`}`;
    const response = await this.#client.send('POST', at, {
      user: job.user,
      body: { ...this.#input(job), ...body },
    });
    this.#mark(job, strategy);
    if (response === undefined || response.status === 503) {
      job.outcome = 'lost';
      await response?.body?.cancel().catch(() => undefined);
      return [job, undefined];
    }
    if (response.status === 200) {
      job.outcome = 'accepted';
      const [, runId] = /\/runs\/([0-9a-f-]{36})/.exec(response.headers.get('content-location') ?? '') ?? [];
      if (runId !== undefined) job.runId = runId;
      return [job, response];
    }
    job.outcome = 'refused';
    const isExpected = response.status === 409 && strategy === 'reject';
    if (!isExpected) this.#violation(job, `its creation was ${response.status} ${await response.text()}`);
    else await response.body?.cancel();
    return [job, undefined];
  }

  #input({ name, kind }: Job): Body {
    const shared = {
      assistant_id: kind === 'work' ? 'work' : 'ask',
      metadata: { job: name },
      durability: DURABILITIES[this.#random(DURABILITIES.length)],
    };
    if (kind === 'resume') return { ...shared, command: { resume: name } };
    return { ...shared, input: { job: name, pauseMs: PAUSES_MS[this.#random(PAUSES_MS.length)] } };
  }

  /** What a run of this strategy may do to the others of its thread. */
  #mark(by: Job, strategy: unknown): void {
    if (strategy !== 'interrupt' && strategy !== 'rollback') return;
    for (const job of this.#ledger.jobs)
      if (job.threadId === by.threadId && job !== by)
        job[strategy === 'rollback' ? 'mayBeGone' : 'mayBeInterrupted'] = true;
  }

  async #join(job: Job, place: string): Promise<void> {
    const { status, text } = await this.#client.ask('GET', `${place}/join`, job);
    if (status === 404) this.#gone(job, 'it');
    else if (status !== 200) this.#violation(job, `its join was ${status} ${text}`);
    else this.#take(job, JSON.parse(text));
  }

  #take(
    job: Job,
    value: { readonly steps?: readonly string[]; readonly __error__?: { readonly error: string } },
  ): void {
    const { __error__: error, steps } = value;
    if (error !== undefined) job.error = error.error;
    else if (steps !== undefined) job.result = steps;
  }

  #gone(job: Job, what: string): void {
    if (!job.mayBeGone) this.#violation(job, `${what} is gone`);
  }

  #violation({ name, how, threadId, runId }: Job, what: string): void {
    this.#ledger.errors.push(`${name} (${how}, thread ${threadId}, run ${runId}): ${what}`);
  }

  async #thread(): Promise<string> {
    const recent = this.threads
      .slice(-RECENT_THREADS)
      .filter((id) => (this.#runs.get(id) ?? 0) < RUNS_OF_A_THREAD);
    const id = recent[this.#random(recent.length + 1)] ?? (await this.#newThread(true));
    this.#runs.set(id, (this.#runs.get(id) ?? 0) + 1);
    return id;
  }

  async #newThread(isShared = false): Promise<string> {
    const id = randomUUID();
    const body = { thread_id: id, if_exists: 'do_nothing' };
    const { status, text } = await this.#client.ask('POST', '/threads', { user: 'maker', body });
    if (status !== 200) this.#ledger.errors.push(`a thread was ${status} ${text}`);
    if (isShared) this.threads.push(id);
    return id;
  }
}
