// One box in its sidecar: the sandbox that serves its listener, and the policy that is in effect there. The sidecar knows no
// version of the platform; it is kept here, together with the process that acknowledged it. One of the files that may reveal
// secrets: it sends the sidecar the key of the CA of the box.
import { setTimeout as delay } from 'node:timers/promises';
import { isObject } from '../../base/json/json-document.ts';
import type { Issue } from '../../base/schema.ts';
import type { BoxAuthority } from '../box-authorities.ts';
import type { PolicyDocument } from '../box-document.ts';
import { BoxError } from '../box-error.ts';
import type { BoxListen } from '../engine.ts';
import type { AdminReply } from './sidecar-admin.ts';
import type { SidecarProcess } from './sidecar-process.ts';

/** How long the sidecar before may keep the port of a box after its end. */
const PORT_WAIT_MS = 2_000;
const PORT_PAUSE_MS = 50;

export class BoxProxy {
  readonly sidecar: SidecarProcess;
  readonly url: string;
  readonly #path: string;
  #version: number;
  #secretNames: readonly string[];

  private constructor(id: string, sidecar: SidecarProcess, url: string, policy: PolicyDocument) {
    this.sidecar = sidecar;
    this.url = url;
    this.#path = `/v1/sandboxes/${id}`;
    this.#version = policy.version;
    this.#secretNames = Object.keys(policy.secrets);
  }

  /** Creates the sandbox; in place of one that an attempt before left. Rejects with a BoxError. */
  static async create(
    id: string,
    sidecar: SidecarProcess,
    {
      listen,
      authority,
      token,
      policy,
    }: {
      readonly listen: BoxListen;
      readonly authority: BoxAuthority;
      readonly token: string;
      readonly policy: PolicyDocument;
    },
  ): Promise<BoxProxy> {
    await sidecar.admin.ask('DELETE', `/v1/sandboxes/${id}`);
    const ca = { certificate_pem: authority.certificatePem, private_key_pem: authority.key.reveal() };
    const rest = { id, ca, proxy_config: policy.document, workspace_secrets: policy.secrets };
    const lateMs = performance.now() + PORT_WAIT_MS;
    for (;;) {
      const reply = await sidecar.admin.ask('POST', '/v1/sandboxes', {
        ...rest,
        ...('handle' in listen
          ? { listen: { handed_over: await sidecar.handOver(listen.handle, id) } }
          : { listen: addressOf(listen), ...(listen.needsToken && { token }) }),
      });
      const { proxy } = reply.document;
      if (reply.status === 201) return new BoxProxy(id, sidecar, String(proxy), policy);
      const isTaken = issuesOf(reply).some(({ loc }) => loc.join('.') === 'body.listen');
      if (!isTaken || 'handle' in listen || performance.now() > lateMs) throw errorOf(reply);
      await delay(PORT_PAUSE_MS);
    }
  }

  get version(): number {
    return this.#version;
  }

  /** An older policy than the one in effect changes nothing. Rejects with a BoxError, and the policy before stays. */
  async apply(policy: PolicyDocument): Promise<number> {
    if (policy.version <= this.#version) return this.#version;
    const { admin } = this.sidecar;
    const gone = this.#secretNames.filter((name) => !Object.hasOwn(policy.secrets, name));
    const changes = { ...Object.fromEntries(gone.map((name) => [name, null])), ...policy.secrets };
    // They take effect with the document.
    const stored = await admin.ask('PUT', `${this.#path}/workspace_secrets`, changes);
    if (stored.status !== 200) throw errorOf(stored);
    this.#secretNames = Object.keys(policy.secrets);
    const applied = await admin.ask('PUT', `${this.#path}/proxy_config`, { proxy_config: policy.document });
    if (applied.status !== 200) throw errorOf(applied);
    this.#version = policy.version;
    return this.#version;
  }

  /** Clients with the token before are disconnected. */
  async replaceToken(token: string): Promise<void> {
    const reply = await this.sidecar.admin.ask('PATCH', this.#path, { token });
    if (reply.status !== 200) throw errorOf(reply);
  }

  /**
   * Nothing is left of the sandbox, also if the sidecar has ended. One that does not respond is ended: it would go on to serve
   * rules that nobody can withdraw.
   */
  static async remove(id: string, sidecar: SidecarProcess): Promise<void> {
    const asked = sidecar.admin.ask('DELETE', `/v1/sandboxes/${id}`).catch(async () => {
      sidecar.kill('SIGKILL');
      await sidecar.ended;
      return GONE;
    });
    const reply = await Promise.race([asked, sidecar.ended.then(() => GONE)]);
    if (reply.status !== 204 && reply.status !== 404) throw errorOf(reply);
  }
}

const GONE: AdminReply = { status: 204, document: {} };

function addressOf({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The sidecar quotes no value in an issue. */
function issuesOf({ status, document: { detail } }: AdminReply): readonly Issue[] {
  return status === 422 && Array.isArray(detail) ? detail.filter(isIssue) : [];
}

function isIssue(value: unknown): value is Issue {
  return isObject(value) && Array.isArray(value['loc']) && typeof value['msg'] === 'string';
}

function errorOf(reply: AdminReply): BoxError {
  const issues = issuesOf(reply);
  if (issues.some(({ loc }) => loc[1] === 'listen'))
    return new BoxError('failed', 'The listener of the box cannot be opened: another program uses its port');
  if (issues.length > 0) {
    const relative = issues.map((issue) => ({
      ...issue,
      loc: issue.loc.slice(issue.loc[1] === 'proxy_config' ? 2 : 1),
    }));
    return new BoxError('invalid_policy', 'The policy of the box is rejected', relative);
  }
  const { detail } = reply.document;
  const isBusy = reply.status === 429 || reply.status === 503;
  return new BoxError(
    isBusy ? 'unavailable' : 'failed',
    typeof detail === 'string' ? detail : 'The sidecar rejects the box',
  );
}
