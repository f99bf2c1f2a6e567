// Documents that mark what they inject, so that each request tells which one it was judged by: every kind of value,
// under names that both documents share and under names of its own. It states no expectation of its own.
import type { StateStore } from '../../src/sidecar/state/state-store.ts';
import type { CallbackResponse } from '../support/callback-endpoint.ts';
import { headerValues } from '../support/message-reader.ts';
import { type OriginRequest, jsonResponse } from '../support/recording-origin.ts';
import { type Scene, type SceneOptions, createScene } from './credential-scene.ts';

/** Workspace secrets of the documents that are marked `old` and `new`. */
export const markSecrets: Readonly<Record<string, string>> = { OLD: 'sesame-of-old', NEW: 'sesame-of-new' };

export type Mark = 'old' | 'new';

/** A rule whose name, header names and values all carry the mark. */
export function markedRule(mark: Mark, host = 'api.test'): unknown {
  const headers = [
    { name: 'X-Plain', type: 'plaintext', value: `plain-${mark}` },
    { name: 'X-Opaque', type: 'opaque', value: `opaque-${mark}` },
    { name: 'Authorization', type: 'workspace_secret', value: `Bearer {${mark.toUpperCase()}}` },
    { name: `X-Only-${mark}`, type: 'plaintext', value: mark },
  ];
  return { name: mark, match_hosts: [host], headers };
}

/** What a request carries that was judged by the rule of this mark, and no trace of another. */
export function carrying(mark: Mark): readonly string[] {
  const secret = markSecrets[mark.toUpperCase()];
  return [`x-plain: plain-${mark}`, `x-opaque: opaque-${mark}`, `authorization: Bearer ${secret}`].concat(
    `x-only-${mark}: ${mark}`,
  );
}

/** The headers of marked rules in a request, in the order of the wire. */
export function marksIn({ headers }: Pick<OriginRequest, 'headers'>): readonly string[] {
  return headers
    .map(([name, value]) => `${name.toLowerCase()}: ${value}`)
    .filter((field) => /^(?:x-plain|x-opaque|authorization|x-only-\w+):/.test(field));
}

/** A scene under the document of mark `old`, for `api.test`. */
export function createRevisionScene(options: SceneOptions = {}): Promise<Scene> {
  return createScene({ rules: [markedRule('old')], secrets: markSecrets, ...options });
}

/** A callback for `called.test` whose own request header carries the mark. */
export function markedCallback(mark: Mark, url: string): unknown {
  const headers = [{ name: 'X-Mark', type: 'opaque', value: mark }];
  return { name: mark, match_hosts: ['called.test'], url, ttl_seconds: 60, request_headers: headers };
}

/** What the endpoint answers to a marked callback; `before` may hold it up. */
export function respondMarked(before: (mark: Mark) => unknown = () => undefined): CallbackResponse {
  return async ({ request, send }) => {
    const mark: Mark = headerValues(request, 'x-mark')[0] === 'old' ? 'old' : 'new';
    await before(mark);
    const fields = carrying(mark).map((field) => field.split(': '));
    await send(jsonResponse({ headers: Object.fromEntries(fields) }));
  };
}

export type ScriptedStore = StateStore & {
  readonly contents: ReadonlyMap<string, string>;
  /** Called with each write before it is done: may hold it up, or reject and make it fail. */
  before: () => unknown;
};

/** Keeps what it is given in memory, from one sidecar to the next. */
export function createScriptedStore(): ScriptedStore {
  const contents = new Map<string, string>();
  const store: ScriptedStore = {
    contents,
    before: () => undefined,
    readAll: async () => new Map(contents),
    async write(id, content) {
      await store.before();
      contents.set(id, content);
      return 'durable';
    },
    async remove(id) {
      await store.before();
      contents.delete(id);
      return 'durable';
    },
    close: async () => {},
  };
  return store;
}
