// The API of a platform that may be killed in the middle of a call: what has no response is asked again.
import { setTimeout as delay } from 'node:timers/promises';

/** Throws an Error for a response that is no success, except 429 and 503, after which the call is repeated. */
export type Ask = (method: string, path: string, body?: object) => Promise<unknown>;

const PAUSE_MS = 100;
const ATTEMPTS = 600;

export function createAsk(port: () => Promise<number>, key: string): Ask {
  return async (method, path, body) => {
    for (let attempt = 1; ; attempt += 1) {
      const response = await send(await port(), { method, path, body, key });
      if (response !== undefined && response.status < 300) return JSON.parse(response.text || 'null');
      const isPassing = response === undefined || response.status === 429 || response.status === 503;
      if (!isPassing || attempt === ATTEMPTS)
        throw new Error(`${method} ${path}: ${response?.status ?? 'no response'} ${response?.text ?? ''}`);
      await delay(PAUSE_MS);
    }
  };
}

type Sent = {
  readonly method: string;
  readonly path: string;
  readonly body: object | undefined;
  readonly key: string;
};

async function send(port: number, { method, path, body, key }: Sent) {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  } catch {
    return undefined;
  }
}
