// The routes that say what the server is and how it does: liveness, version, the description of the API, metrics.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { type Access, anyone } from '../../api/access.ts';
import type { Metrics } from '../../api/metrics.ts';
import { toPage } from '../../api/openapi/documents-page.ts';
import { type ApiFacts, type OpenApiDocument, toOpenApi } from '../../api/openapi/openapi.ts';
import { type Route, defineRoute } from '../../api/route.ts';
import { sql } from '../../store/sql.ts';
import type { ServedAs } from '../configuration/deployment-input.ts';

export type DocumentParts = {
  /** All other routes, with the paths that clients call. */
  readonly routes: readonly Route[];
  /** Puts the prefix before the paths of this file. */
  finish(routes: readonly Route[]): readonly Route[];
  readonly version: string;
  /** Of an instance of a deployment. */
  readonly servedAs: Pick<ServedAs, 'id' | 'name' | 'revisionId'> | undefined;
  /** `http.disable_meta`: liveness alone, which asks nothing. */
  readonly isDisabled: boolean;
  /** For what tells more than that the server is there. */
  readonly access: Access;
  /** For metrics, which count the requests of all users; undefined: nobody reads them here. */
  readonly operators: Access | undefined;
  /** Undefined where metrics are served elsewhere. */
  metrics(): Pick<Metrics, 'contentType' | 'read'> | undefined;
  /** False once the process shuts down. */
  isReady(): boolean;
};

const shared = { method: 'GET', tag: 'System', access: anyone } as const;
const tracking = { untracked: 'the audit log is of the platform' } as const;

/** The given routes, and those that describe them. */
export function withAgentDocuments(parts: DocumentParts): readonly Route[] {
  const describe = (): OpenApiDocument => toOpenApi(all, API_VERSION, FACTS);
  const own = parts.isDisabled
    ? [livenessRoute(parts)]
    : [
        livenessRoute(parts),
        infoRoute(parts),
        ...descriptionRoutes(parts, describe),
        ...metricsRoutes(parts),
      ];
  const all: readonly Route[] = [...parts.routes, ...parts.finish(own)];
  return all;
}

/** Of the public contract whose shapes the routes have. */
const API_VERSION = '0.1.0';

const DESCRIPTION =
  'Assistants, threads and runs of the graphs of one deployment. What the caller may not see gets the response of what does not exist. ' +
  'Fields that are not described here are ignored. Every response has X-Request-Id.';

const FACTS: ApiFacts = { title: 'Sallyport agent server', description: DESCRIPTION };

function livenessRoute({ isReady, isDisabled }: DocumentParts): Route {
  return defineRoute({
    ...{ ...shared, tracking, path: '/ok', summary: 'Liveness probe; with check_db=1, of the database too' },
    query: z.object({ check_db: z.enum(['0', '1', 'true', 'false']).optional() }),
    responses: { 200: z.strictObject({ ok: z.literal(true) }) },
    async handle({ db, query: { check_db: check = '0' } }) {
      if (!isReady()) throw new DomainError('unavailable', 'This process is shutting down', 1000);
      if (!isDisabled && (check === '1' || check === 'true')) await sql`select 1`.execute(db);
      return { body: { ok: true as const } };
    },
  });
}

const info = z
  .strictObject({
    version: z.string().describe('Of this program'),
    context: z.literal('js'),
    flags: z.strictObject({ assistants: z.boolean(), crons: z.boolean(), langsmith: z.boolean() }),
    host: z
      .strictObject({
        kind: z.literal('self-hosted'),
        project_id: z.string(),
        revision_id: z.string(),
        host_revision_id: z.string(),
        deployment_name: z.string(),
      })
      .optional()
      .describe('Of an instance of a deployment: the deployment and its revision'),
  })
  .meta({ id: 'AgentServerInfo' });

function infoRoute({ version, servedAs }: DocumentParts): Route {
  const flags = { assistants: true, crons: false, langsmith: false };
  const host = servedAs && {
    ...{ kind: 'self-hosted' as const, project_id: servedAs.id, deployment_name: servedAs.name },
    ...{ revision_id: servedAs.revisionId, host_revision_id: servedAs.revisionId },
  };
  return defineRoute({
    ...{ ...shared, tracking, path: '/info', summary: 'Version, and what this server has' },
    responses: { 200: info },
    handle: async () => ({ body: { version, context: 'js' as const, flags, ...(host && { host }) } }),
  });
}

/** Made with the first request for it: most processes never get one. */
function descriptionRoutes({ access }: DocumentParts, describe: () => OpenApiDocument): readonly Route[] {
  let text: string | undefined;
  let page: ReturnType<typeof toPage> | undefined;
  return [
    defineRoute({
      ...{ ...shared, tracking, access, path: '/openapi.json', summary: 'OpenAPI document' },
      responses: { 200: { textType: 'application/json', schema: z.record(z.string(), z.unknown()) } },
      async handle() {
        text ??= JSON.stringify(describe());
        return { body: text };
      },
    }),
    defineRoute({
      ...{ ...shared, tracking, access, path: '/docs', summary: 'API reference (HTML)' },
      responses: { 200: { textType: 'text/html' } },
      async handle() {
        page ??= toPage(describe());
        return { body: page.html, fields: page.fields };
      },
    }),
  ];
}

function metricsRoutes({ metrics, operators: access }: DocumentParts): readonly Route[] {
  if (access === undefined) return [];
  const route = defineRoute({
    ...{ ...shared, tracking, path: '/metrics', summary: 'Metrics of this process, for Prometheus' },
    access,
    failures: [404],
    responses: { 200: { textType: 'text/plain' } },
    async prepare() {
      const source = metrics();
      if (source === undefined)
        throw new DomainError('not_found', 'The metrics are on a listener of their own');
      return { text: await source.read(), type: source.contentType };
    },
    handle: async (_, { text, type }) => ({ body: text, fields: { 'Content-Type': type } }),
  });
  return [route];
}
