// The JSON Schemas that the OpenAPI document names. Those of documents that a caller sends are the ones by which the sidecar
// parses them; those of responses are written here, and a test validates real responses by them.
import { issueTypes } from '../../base/schema.ts';
import { adminErrorCodes } from '../admin-errors.ts';
import type { DocumentSchemas, JsonSchema } from '../target.ts';

export function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

export function componentSchemas(schemas: DocumentSchemas): Readonly<Record<string, JsonSchema>> {
  return { ...written(schemas), ...shown, ...errors };
}

const text: JsonSchema = { type: 'string' };
const count: JsonSchema = { type: 'integer', minimum: 0 };
const flag: JsonSchema = { type: 'boolean' };
const issues = listOf(reference('Issue'));

/** The members are those that every response has, unless `optional` lists them. */
function closed(properties: Readonly<Record<string, JsonSchema>>, optional: readonly string[] = []) {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required, additionalProperties: false };
}

function listOf(items: JsonSchema): JsonSchema {
  return { type: 'array', items };
}

function written({ proxyConfig, sandboxCreation, sandboxChange }: DocumentSchemas) {
  const { properties, ...creation } = sandboxCreation as { readonly properties: object };
  return {
    ProxyConfig: proxyConfig,
    ProxyConfigWrite: {
      description: 'The document, or what GET returns: its etag is then what the write replaces',
      anyOf: [reference('ProxyConfig'), reference('WrappedProxyConfig')],
    },
    WrappedProxyConfig: closed({ proxy_config: reference('ProxyConfig'), etag: text, revision: count }, [
      'etag',
      'revision',
    ]),
    SecretChanges: {
      description: 'A value that is null deletes the secret',
      anyOf: [
        { type: 'object', maxProperties: 1000, additionalProperties: reference('SecretValue') },
        {
          ...listOf(closed({ key: reference('SecretName'), value: reference('SecretValue') })),
          maxItems: 1000,
        },
      ],
    },
    SecretName: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$', maxLength: 128 },
    SecretValue: { type: ['string', 'null'], minLength: 1, writeOnly: true },
    SandboxId: { type: 'string', pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$', maxLength: 63 },
    SandboxCreation: {
      ...creation,
      properties: {
        ...properties,
        id: reference('SandboxId'),
        listen: { anyOf: [text, closed({ handed_over: text })] },
        proxy_config: reference('ProxyConfig'),
        workspace_secrets: reference('SecretChanges'),
      },
    },
    SandboxChange: sandboxChange,
  };
}

const sandbox: Readonly<Record<string, JsonSchema>> = {
  id: reference('SandboxId'),
  proxy: { type: 'string', description: 'URL of the proxy that the sandbox uses' },
  has_token: flag,
  ca_pem: { type: 'string', description: 'Of its own CA: what its clients must trust' },
  revision: count,
  limits: { type: 'object', additionalProperties: count },
  connections: count,
  created_at: { type: 'string', format: 'date-time' },
  failed: { type: 'string', description: 'Why it serves no client' },
};
const OPTIONAL: readonly string[] = ['ca_pem', 'failed'];
const token: JsonSchema = { type: 'string', description: 'A token that was generated: shown once' };

const shown: Readonly<Record<string, JsonSchema>> = {
  Routes: closed({ routes: listOf(closed({ method: text, path: text, what: text, needs_token: flag })) }),
  OpenApi: { type: 'object', required: ['openapi', 'info', 'paths', 'components'] },
  Health: closed({ status: { const: 'ok' } }),
  Readiness: closed({
    status: { const: 'ready' },
    reloads: closed({ done: count, failed: count, is_current: flag }),
    ca: closed({ is_ending: flag }),
  }),
  ActiveProxyConfig: closed({ proxy_config: reference('ProxyConfig'), revision: count, etag: text }),
  AppliedProxyConfig: closed({ revision: count, warnings: issues }),
  SecretNames: closed({ workspace_secrets: listOf(closed({ key: text })) }),
  ChangedSecrets: closed({ workspace_secrets: listOf(closed({ key: text })), warnings: issues }),
  Sandbox: closed(sandbox, OPTIONAL),
  Sandboxes: closed({ sandboxes: listOf(reference('Sandbox')) }),
  ChangedSandbox: closed({ ...sandbox, token }, [...OPTIONAL, 'token']),
  CreatedSandbox: closed({ ...sandbox, token, warnings: issues }, [...OPTIONAL, 'token']),
};

const errors: Readonly<Record<string, JsonSchema>> = {
  Error: closed({ detail: text, code: { enum: adminErrorCodes.map(({ code }) => code) } }),
  Issues: closed({ detail: issues }),
  Issue: closed({
    loc: { ...listOf({ type: ['string', 'integer'] }), description: 'path of the field' },
    msg: text,
    type: { enum: issueTypes },
  }),
};
