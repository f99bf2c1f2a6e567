// The routes that anybody may call: liveness, version, and the description of the API.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { toPage } from './documents-page.ts';
import { type OpenApiDocument, toOpenApi } from './openapi.ts';
import { anyone } from '../access.ts';
import { type Info, createInfo, infoSchema } from '../contract/info.ts';
import { type Route, defineRoute } from '../route.ts';

export type DocumentOptions = {
  /** All other routes; the document describes them together with those of this file. */
  readonly routes: readonly Route[];
  /** Of this program. */
  readonly version: string;
  /** What modules add to `/info`. */
  readonly info?: readonly Info[];
  /** False once the process shuts down: a load balancer must choose another. */
  isReady(): boolean;
};

/** The given routes, and those that describe them. */
export function withDocuments({ routes, version, info = [], isReady }: DocumentOptions): readonly Route[] {
  const shown = createInfo(version, info);
  // Created with the first request for it: most processes never get one.
  let text: string | undefined;
  let page: ReturnType<typeof toPage> | undefined;
  const document = (): OpenApiDocument => toOpenApi(all, API_VERSION);
  const all: readonly Route[] = [
    ...routes,
    defineRoute({
      ...open('/ok', 'Liveness probe'),
      responses: { 200: z.strictObject({ ok: z.literal(true) }) },
      async handle() {
        if (!isReady()) throw new DomainError('unavailable', 'This process is shutting down', 1000);
        return { body: { ok: true as const } };
      },
    }),
    defineRoute({
      ...open('/info', 'Versions, and what clients may send'),
      aliases: ['/api/v1/info', '/api/info'],
      responses: { 200: infoSchema },
      handle: async () => ({ body: shown }),
    }),
    defineRoute({
      ...open('/openapi.json', 'OpenAPI document'),
      responses: { 200: { textType: 'application/json', schema: z.record(z.string(), z.unknown()) } },
      async handle() {
        text ??= JSON.stringify(document());
        return { body: text };
      },
    }),
    defineRoute({
      ...open('/docs', 'API reference (HTML)'),
      responses: { 200: { textType: 'text/html' } },
      async handle() {
        page ??= toPage(document());
        return { body: page.html, fields: page.fields };
      },
    }),
  ];
  return all;
}

/** Of the control plane, as existing clients know it. */
const API_VERSION = '0.1.0';

function open(path: string, summary: string) {
  return {
    method: 'GET',
    path,
    summary,
    tag: 'Platform',
    access: anyone,
    tracking: { untracked: 'it reveals nothing about any organization' },
  } as const;
}
