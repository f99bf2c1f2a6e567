// Documents that mark what they inject, so that each request shows which document decided it: every kind of value, under
// names that both documents share and under names of their own. It checks nothing itself.
import type { StateStore } from '../../src/sidecar/state/state-store.ts';
import type { CallbackResponse } from '../support/callback-endpoint.ts';
import { headerValues } from '../support/message-reader.ts';
import { type OriginRequest, jsonResponse } from '../support/recording-origin.ts';
import { type Scene, type SceneOptions, createScene } from './credential-scene.ts';

/** Workspace secrets of the documents that are marked `old` and `new`. */
export const markSecrets: Readonly<Record<string, string>> = { OLD: 'sesame-of-old', NEW: 'sesame-of-new' };

export type Mark = 'old' | 'new';

/** A rule whose name, header names and values all contain the mark. */
export function markedRule(mark: Mark, host = 'api.test'): unknown {
  const headers = [
    { name: 'X-Plain', type: 'plaintext', value: `plain-${mark}` },
    { name: 'X-Opaque', type: 'opaque', value: `opaque-${mark}` },
    { name: 'Authorization', type: 'workspace_secret', value: `Bearer {${mark.toUpperCase()}}` },
    { name: `X-Only-${mark}`, type: 'plaintext', value: mark },
  ];
  return { name: mark, match_hosts: [host], headers };
}

/** The headers of a request that the rule with this mark decided, without a trace of another rule. */
export function carrying(mark: Mark): readonly string[] {
  const secret = markSecrets[mark.toUpperCase()];
  return [`x-plain: plain-${mark}`, `x-opaque: opaque-${mark}`, `authorization: Bearer ${secret}`].concat(
    `x-only-${mark}: ${mark}`,
  );
}

/** The headers of marked rules in a request, in wire order. */
export function marksIn({ headers }: Pick<OriginRequest, 'headers'>): readonly string[] {
  return headers
    .map(([name, value]) => `${name.toLowerCase()}: ${value}`)
    .filter((field) => /^(?:x-plain|x-opaque|authorization|x-only-\w+):/.test(field));
}

/** A scene with the document marked `old`, for `api.test`. */
export function createRevisionScene(options: SceneOptions = {}): Promise<Scene> {
  return createScene({ rules: [markedRule('old')], secrets: markSecrets, ...options });
}

/** A callback for `called.test` whose own request header carries the mark. */
export function markedCallback(mark: Mark, url: string): unknown {
  const headers = [{ name: 'X-Mark', type: 'opaque', value: mark }];
  return { name: mark, match_hosts: ['called.test'], url, ttl_seconds: 60, request_headers: headers };
}

/** The response of the endpoint to a marked callback; `before` may delay it. */
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
  /** Called before each write: may delay it, or reject to make it fail. */
  before: () => unknown;
};

/** Holds the state in memory across sidecars. */
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
