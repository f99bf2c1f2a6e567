// A client of two agent servers that are killed: it asks whichever accepts requests, asks again, and follows streams over
// reconnects.
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../../http1/mutation.ts';
import type { AgentSeries } from './agent-server-process.ts';

export type AgentReply = { readonly status: number; readonly headers: Headers; readonly text: string };

type Asked = {
  readonly user: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
};

export type Frame = { readonly id: number; readonly event: string; readonly data: string };

const RETRY_MS = 100;
/** Of whatever is asked again. */
const GIVE_UP_MS = 90_000;

export class AgentClient {
  readonly #series: readonly AgentSeries[];
  readonly #random: Random;

  constructor(series: readonly AgentSeries[], random: Random) {
    this.#series = series;
    this.#random = random;
  }

  /** One attempt; undefined: the connection was refused, or cut before the response began. */
  async send(
    method: string,
    path: string,
    { user, body, headers = {} }: Asked,
  ): Promise<Response | undefined> {
    const url = await this.#url();
    try {
      return await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer token-${user}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch {
      return undefined;
    }
  }

  /** Until there is a response that no kill explains; for what may be repeated. */
  async ask(method: string, path: string, asked: Asked): Promise<AgentReply> {
    const lateMs = performance.now() + GIVE_UP_MS;
    for (;;) {
      const response = await this.send(method, path, asked);
      const text = await response?.text().catch(() => undefined);
      if (response !== undefined && text !== undefined && response.status !== 503)
        return { status: response.status, headers: response.headers, text };
      if (performance.now() > lateMs)
        throw new Error(
          `${method} ${path} has no response for 90 s; the last one was ${response?.status} ${text}`,
        );
      await pause(RETRY_MS);
    }
  }

  async #url(): Promise<string> {
    for (;;) {
      const up = this.#series.filter(({ url }) => url !== undefined);
      const url = up[this.#random(up.length)]?.url;
      if (url !== undefined) return url;
      await Promise.race(this.#series.map((one) => one.ready()));
      await pause(1);
    }
  }
}

/** The frames of a body that have come whole. True at its end; false: it was cut, or the reader has enough. */
export async function readFrames(response: Response, onFrame: (frame: Frame) => boolean): Promise<boolean> {
  let text = '';
  try {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      for (const part of parts) {
        const fields = new Map(
          part.split('\n').map((line) => [line.split(':')[0], line.replace(/^\w+: ?/, '')]),
        );
        const event = fields.get('event');
        if (event === undefined) continue;
        const id = Number(fields.get('id') ?? Number.NaN);
        if (!onFrame({ id, event, data: fields.get('data') ?? '' })) return false;
      }
    }
    return true;
  } catch {
    return false;
  }
}
