// A control plane of the tests, on loopback: the public calls of deployments, in memory. A test decides what happens to a request:
// its response may be lost before or after its effect, or be another one.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

type Json = Record<string, unknown>;

export type SeenRequest = {
  /** `POST /v2/deployments` */
  readonly line: string;
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
};

/** `lost before`: the connection is cut and nothing was done; `lost after`: it was. */
export type Interference =
  | 'lost before'
  | 'lost after'
  | { readonly status: number; readonly body: unknown }
  | { readonly status: number; readonly html: string };

type FakeDeployment = Json & {
  readonly id: string;
  readonly name: string;
  latest_revision_id: string | null;
};
type FakeRevision = Json & { readonly id: string; status: string };

export class FakeControlPlane implements AsyncDisposable {
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly requests: SeenRequest[] = [];
  readonly deployments: FakeDeployment[] = [];
  /** Newest first. */
  readonly revisions: FakeRevision[] = [];
  readonly uploads: Buffer[] = [];
  profiles: readonly Json[] = [];
  logs: readonly Json[] = [];
  /** The states that a new revision goes through; the last one stays. */
  states: readonly string[] = ['QUEUED', 'BUILDING', 'DEPLOYED'];
  /** By the line of the request, each for one of them. */
  readonly interferences: [line: RegExp, what: Interference][] = [];
  /** Why deployments wait. */
  reason: string | undefined;
  uploadOrigin: string | undefined;

  static async start(): Promise<FakeControlPlane> {
    const plane = new FakeControlPlane();
    await once(plane.#server.listen(0, '127.0.0.1'), 'listening');
    return plane;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get lines(): readonly string[] {
    return this.requests.map(({ line }) => line);
  }

  /** The JSON of the last request with this line. */
  sent(line: string): unknown {
    return JSON.parse(String(this.requests.findLast((one) => one.line === line)?.body));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, search } = new URL(request.url ?? '/', this.url);
    const line = `${request.method} ${this.#named(pathname)}`;
    const body = await buffer(request);
    this.requests.push({ line, query: search, headers: request.headers, body });
    const at = this.interferences.findIndex(([pattern]) => pattern.test(line));
    const [[, what] = []] = at === -1 ? [] : this.interferences.splice(at, 1);
    if (what === 'lost before') return void request.socket.destroy();
    if (typeof what === 'object' && 'html' in what)
      return void response.writeHead(what.status, { 'content-type': 'text/html' }).end(what.html);
    const { status, body: reply } =
      typeof what === 'object' ? what : this.#respond(request.method ?? '', pathname, body, search);
    if (what === 'lost after') return void request.socket.destroy();
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(reply === undefined ? '' : JSON.stringify(reply));
  }

  /** Ids as names, so that tests can compare. */
  #named(path: string): string {
    return path
      .replaceAll(/(deployments|projects)\/[\da-f-]{36}/g, '$1/ID')
      .replaceAll(/revisions\/[\da-f-]{36}/g, 'revisions/ID')
      .replaceAll(/objects\/[\da-f-]{36}/g, 'objects/ID');
  }

  #respond(method: string, path: string, bytes: Buffer, search: string): { status: number; body?: unknown } {
    if (path.startsWith('/objects/')) {
      this.uploads.push(bytes);
      return { status: 200 };
    }
    const body: Json = bytes.length === 0 ? {} : JSON.parse(String(bytes));
    if (path === '/v1/proxy-profiles')
      return { status: 200, body: { proxy_profiles: this.profiles, next_cursor: null } };
    if (path.endsWith('_logs')) return { status: 200, body: this.#readLogs(body) };
    if (path === '/v2/deployments') return this.#all(method, body, new URLSearchParams(search));
    const [, , , id, part, revisionId, verb] = path.split('/');
    const deployment = this.deployments.find((one) => one.id === id);
    if (deployment === undefined) return { status: 404, body: { detail: `Deployment ID ${id} not found.` } };
    if (part === undefined) return this.#one(method, body, deployment);
    if (part === 'upload-url') return { status: 200, body: this.#createUpload() };
    if (verb === 'redeploy') return { status: 200, body: this.#addRevision(deployment, {}) };
    return { status: 200, body: this.#readRevisions(revisionId) };
  }

  #all(method: string, body: Json, query: URLSearchParams): { status: number; body: unknown } {
    if (method === 'GET') {
      const found = this.deployments.filter(({ name }) => name.includes(query.get('name_contains') ?? ''));
      const offset = Number(query.get('offset') ?? 0);
      const resources = found.slice(offset, offset + Number(query.get('limit') ?? 20));
      return { status: 200, body: { resources, offset: offset + resources.length } };
    }
    const deployment = {
      ...{ ...body, id: randomUUID(), name: String(body['name']), status: 'READY' },
      ...{ latest_revision_id: null, active_revision_id: null },
      source_config: { custom_url: 'http://127.0.0.1:8090/d/x' },
    };
    this.deployments.push(deployment);
    return { status: 201, body: this.#addRevision(deployment, {}, 'CREATING') };
  }

  #one(method: string, body: Json, deployment: FakeDeployment): { status: number; body?: unknown } {
    if (method === 'GET') return { status: 200, body: { ...deployment, status_reason: this.reason ?? null } };
    if (method === 'DELETE') {
      this.deployments.splice(this.deployments.indexOf(deployment), 1);
      return { status: 204 };
    }
    return { status: 200, body: this.#addRevision(deployment, body) };
  }

  #createUpload(): Json {
    const path = `objects/${randomUUID()}`;
    return { upload_url: `${this.uploadOrigin ?? this.url}/${path}?signature=s`, object_path: path };
  }

  #addRevision(deployment: FakeDeployment, body: Json, status = this.states[0] ?? ''): FakeDeployment {
    const { source_revision_config } = body;
    const revision = { id: randomUUID(), status, created_at: '2026-01-02T03:04:05Z', source_revision_config };
    this.revisions.unshift(revision);
    deployment.latest_revision_id = revision.id;
    return deployment;
  }

  /** Each read of a revision brings it to its next state. */
  #readRevisions(id: string | undefined): unknown {
    if (id === undefined) return { resources: this.revisions, offset: this.revisions.length };
    const found = this.revisions.find((one) => one.id === id);
    if (found === undefined) return {};
    const shown = { ...found };
    const at = this.states.indexOf(found.status);
    found.status = this.states[at + 1] ?? found.status;
    return shown;
  }

  #readLogs({ order, limit, start_time: start = '', level }: Json): unknown {
    const ofLevel = this.logs.filter((one) => level === undefined || one['level'] === level);
    const found = ofLevel.filter(({ timestamp }) => String(timestamp) >= String(start));
    const sorted = order === 'asc' ? found : found.toReversed();
    return { logs: sorted.slice(0, Number(limit)), next_offset: null };
  }
}
