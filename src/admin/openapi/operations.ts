// What an action of the admin API takes and returns, for the OpenAPI document: names of schemas in component-schemas.ts and
// codes of admin-errors.ts. What a route decides by itself, such as its token, is in the table of routes.

export type Described = {
  /** The schema of the JSON document in the body. */
  readonly request?: string;
  readonly success: {
    readonly status: number;
    readonly description: string;
    /** Of a JSON document; none: no body, or text of `mediaType`. */
    readonly schema?: string;
    readonly mediaType?: string;
  };
  /** Fields of the response. */
  readonly headers?: readonly string[];
  /** The codes that this action adds to those of every route. */
  readonly failures?: readonly string[];
};

export const operations: Readonly<Record<string, Described>> = {
  'routes.list': { success: ok('Every route', 'Routes') },
  'openapi.show': { success: { status: 200, description: 'An OpenAPI 3.1 document', schema: 'OpenApi' } },
  'health.show': { success: ok('The process runs', 'Health') },
  'readiness.show': { success: ok('Requests are served', 'Readiness') },
  'ca.show': {
    success: { status: 200, description: 'The certificate', mediaType: 'application/x-pem-file' },
  },
  'proxy_config.show': { success: ok('The document that is active', 'ActiveProxyConfig'), headers: ['ETag'] },
  'proxy_config.apply': {
    request: 'ProxyConfigWrite',
    success: ok('It is active', 'AppliedProxyConfig'),
    headers: ['ETag'],
    failures: ['full', 'protected'],
  },
  'records.follow': {
    success: {
      status: 200,
      description:
        'A record for each line, as in the log, without an end; {"notice": "dropped", "count": N} where N were lost, {"notice": "ended"} at the end',
      mediaType: 'application/x-ndjson',
    },
    failures: ['too_many_readers'],
  },
  'workspace_secrets.list': { success: ok('The names', 'SecretNames') },
  'workspace_secrets.change': {
    request: 'SecretChanges',
    success: ok('The names after the change', 'ChangedSecrets'),
    failures: ['full', 'protected'],
  },
  'sandboxes.list': { success: ok('Every sandbox', 'Sandboxes') },
  'sandbox.create': {
    request: 'SandboxCreation',
    success: { status: 201, description: 'The sandbox exists', schema: 'CreatedSandbox' },
    headers: ['Location'],
    failures: ['exists', 'full', 'namespaces_off', 'not_handed_over', 'listener_rejected'],
  },
  'sandbox.show': { success: ok('The sandbox', 'Sandbox') },
  'sandbox.change': {
    request: 'SandboxChange',
    success: ok('The sandbox after the change', 'ChangedSandbox'),
    failures: ['exists', 'protected', 'full'],
  },
  'sandbox.remove': {
    success: { status: 204, description: 'The sandbox and its connections are gone' },
    failures: ['protected'],
  },
};

function ok(description: string, schema: string): Described['success'] {
  return { status: 200, description, schema };
}
