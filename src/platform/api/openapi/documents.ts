// What anybody may ask of a platform: is it alive, which version is it, how is it spoken to.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { toPage } from './documents-page.ts';
import { type OpenApiDocument, toOpenApi } from './openapi.ts';
import { type Route, defineRoute } from '../route.ts';

export type DocumentOptions = {
  /** All others; the document describes them together with those that are made here. */
  readonly routes: readonly Route[];
  readonly version: string;
  /** False once the process is ending: whoever deals out requests should choose another. */
  isReady(): boolean;
};

/** The routes that were given, and those that tell of them. */
export function withDocuments({ routes, version, isReady }: DocumentOptions): readonly Route[] {
  // Made when it is first asked for: most processes never are.
  let text: string | undefined;
  let page: ReturnType<typeof toPage> | undefined;
  const document = (): OpenApiDocument => toOpenApi(all, version);
  const all: readonly Route[] = [
    ...routes,
    defineRoute({
      ...open('/ok', 'Tell whether requests are taken'),
      success: { status: 200, body: z.strictObject({ ok: z.literal(true) }) },
      async handle() {
        if (!isReady()) throw new DomainError('unavailable', 'This process is ending', 1000);
        return { body: { ok: true } };
      },
    }),
    defineRoute({
      ...open('/info', 'Tell what this is'),
      success: { status: 200, body: z.strictObject({ name: z.literal('sallyport'), version: z.string() }) },
      async handle() {
        return { body: { name: 'sallyport', version } };
      },
    }),
    defineRoute({
      ...open('/openapi.json', 'Tell every route, for machines'),
      success: { status: 200, body: z.record(z.string(), z.unknown()) },
      async handle() {
        text ??= JSON.stringify(document());
        return { body: text, fields: { 'Content-Type': 'application/json' } };
      },
    }),
    defineRoute({
      ...open('/docs', 'Tell every route, for people: a page in HTML'),
      success: { status: 200, text: 'text/html' },
      async handle() {
        page ??= toPage(document());
        return { body: page.html, fields: page.fields };
      },
    }),
  ];
  return all;
}

function open(
  path: string,
  summary: string,
): Pick<Route, 'path' | 'summary' | 'access' | 'tracking' | 'tag' | 'failures'> & { readonly method: 'GET' } {
  return {
    method: 'GET',
    path,
    summary,
    tag: 'Platform',
    access: { to: 'anyone' },
    tracking: { untracked: 'it tells nothing of anybody' },
    failures: [],
  };
}
