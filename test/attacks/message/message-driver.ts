// Plays one `message` row through one entry point of a target and returns what was observed. Independent of the proxy behind
// it: rows are played in the same way against the sidecar and the obvious design. message-verdict.ts compares the result.
import type { LogRecord } from '../../support/spawned-process.ts';
import type { OriginRequest, RecordingOrigin } from '../../support/recording-origin.ts';
import type { WireClient } from '../../support/wire-client.ts';
import type { EntryPoint, MessageExpectation, MessageScript, Step } from './message-script.ts';

export type MessageTarget = {
  /** A client at that entry point that has sent no request. */
  open(entryPoint: EntryPoint): Promise<WireClient>;
  readonly origins: readonly RecordingOrigin[];
  /** The values of the placeholders. */
  values(entryPoint: EntryPoint): Readonly<Record<string, string>>;
  /** The exchange records so far, if the target writes records. */
  records?: () => readonly LogRecord[];
  record?: (index: number) => Promise<LogRecord>;
  /** An event that did not happen within this time counts as missing. */
  readonly patienceMs: number;
  /** Whether the target closes connections where rows expect it; otherwise the driver does not wait for that. */
  readonly ends: boolean;
};

export type SeenResponse = {
  readonly status: number;
  readonly code: string | undefined;
  readonly text: string;
};

export type MessageObservation = {
  readonly responses: readonly SeenResponse[];
  /** The bytes after the last expected response. */
  readonly rest: string;
  /** Whether the other side closed the connection first. */
  readonly isEnded: boolean;
  /** Every byte that the client read. */
  readonly transcript: string;
  readonly arrivals: readonly OriginRequest[];
  /** All bytes that reached origins, over all connections. */
  readonly bytes: string;
  readonly records: readonly LogRecord[] | undefined;
  /** The events that the driver waited for and that did not happen. */
  readonly missing: readonly string[];
};

export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\{([A-Z_]+)\}/g, (whole, name: string) => values[name] ?? whole);
}

export async function playMessage(
  target: MessageTarget,
  script: MessageScript,
  expect: MessageExpectation,
  entryPoint: EntryPoint,
): Promise<MessageObservation> {
  const before = mark(target);
  await using client = await target.open(entryPoint);
  const run = new Run(client, target, before.requests);
  const steps = typeof script.send === 'string' ? [script.send] : script.send;
  run.hasNoBodies = steps.some((step) => typeof step === 'string' && step.startsWith('HEAD '));
  for (const step of steps) {
    if (typeof step === 'string')
      await client.send(fill(step, target.values(entryPoint))).catch(() => undefined);
    else await run.take(step);
  }
  while (run.responses.length < expect.responses.length && (await run.readResponse()));
  const { rest, isEnded } = await run.finish(expect.ends === true && target.ends);
  const wanted = expect.records?.length ?? expect.responses.filter(({ status }) => status >= 200).length;
  if (wanted > 0 && target.record) await run.within('record', target.record(before.records + wanted - 1));
  // One event-loop turn, so that the effects of the last event are observed with this row.
  await new Promise((resolve) => setImmediate(resolve));
  const { missing, responses } = run;
  return { responses, rest, isEnded, transcript: client.transcript, missing, ...since(target, before) };
}

class Run {
  readonly responses: SeenResponse[] = [];
  readonly missing: string[] = [];
  hasNoBodies = false;
  readonly #client: WireClient;
  readonly #target: MessageTarget;
  readonly #before: readonly number[];
  #arrivals = 0;
  #hasLeft = false;

  constructor(client: WireClient, target: MessageTarget, before: readonly number[]) {
    this.#client = client;
    this.#target = target;
    this.#before = before;
  }

  async take(step: Step): Promise<void> {
    if ('leave' in step) {
      this.#hasLeft = true;
      if (step.leave === 'fin') this.#client.end();
      else this.#client.reset();
    } else if (step.wait === 'response') await this.readResponse();
    else {
      const heads = this.#target.origins.map((origin, i) =>
        origin.request((this.#before[i] ?? 0) + this.#arrivals),
      );
      this.#arrivals += 1;
      await this.within('arrival', Promise.race(heads));
    }
  }

  /** False if there is none. */
  async readResponse(): Promise<boolean> {
    const response = await this.within('response', readResponse(this.#client, this.hasNoBodies));
    if (response) this.responses.push(response);
    return response !== undefined;
  }

  async finish(awaitsEnd: boolean): Promise<{ rest: string; isEnded: boolean }> {
    if (!awaitsEnd && !this.#hasLeft) this.#client.end();
    const rest = await this.within(
      'end',
      this.#client.readToEnd().catch(() => ''),
    );
    return { rest: rest ?? '', isEnded: awaitsEnd && rest !== undefined };
  }

  async within<T>(what: string, wanted: Promise<T>): Promise<T | undefined> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => {
      this.missing.push(what);
      resolve(undefined);
    }, this.#target.patienceMs);
    try {
      return await Promise.race([wanted, promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}

async function readResponse(client: WireClient, hasNoBody: boolean): Promise<SeenResponse | undefined> {
  try {
    const head = await client.readHead();
    const code = head.headers.find(([name]) => name === 'X-Sallyport-Error')?.[1];
    const text = hasNoBody ? '' : (await client.readBody()).content.toString('latin1');
    return { status: head.status, code, text };
  } catch {
    return undefined;
  }
}

type Mark = {
  readonly requests: readonly number[];
  readonly transcripts: readonly (readonly number[])[];
  readonly records: number;
};

function mark(target: MessageTarget): Mark {
  return {
    requests: target.origins.map(({ requests }) => requests.length),
    transcripts: target.origins.map(({ transcripts }) => transcripts.map(({ length }) => length)),
    records: target.records?.().length ?? 0,
  };
}

function since(
  target: MessageTarget,
  before: Mark,
): Pick<MessageObservation, 'arrivals' | 'bytes' | 'records'> {
  const arrivals = target.origins.flatMap(({ requests }, i) => requests.slice(before.requests[i]));
  const bytes = target.origins.flatMap(({ transcripts }, i) =>
    transcripts.map((text, k) => text.slice(before.transcripts[i]?.[k] ?? 0)),
  );
  return { arrivals, bytes: bytes.join(''), records: target.records?.().slice(before.records) };
}
