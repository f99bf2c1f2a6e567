// The secrets of a deployment as callers write them, and the names of variables that are the platform's own.
import { z } from '../../../base/schema.ts';

/** What clients leave out by themselves: the platform sets what it needs of them. */
const RESERVED: ReadonlySet<string> = new Set(
  `LANGCHAIN_TRACING_V2 LANGSMITH_TRACING_V2 LANGCHAIN_ENDPOINT LANGCHAIN_PROJECT LANGSMITH_PROJECT
  LANGSMITH_LANGGRAPH_GIT_REPO LANGGRAPH_GIT_REPO_PATH LANGCHAIN_API_KEY LANGGRAPH_HOST_API_KEY LANGSMITH_CONTROL_PLANE_API_KEY
  POSTGRES_URI POSTGRES_PASSWORD DATABASE_URI LANGSMITH_LANGGRAPH_GIT_REF LANGSMITH_LANGGRAPH_GIT_REF_SHA LANGGRAPH_AUTH_TYPE
  LANGSMITH_AUTH_ENDPOINT LANGSMITH_TENANT_ID LANGSMITH_AUTH_VERIFY_TENANT_ID LANGSMITH_HOST_PROJECT_ID
  LANGSMITH_HOST_PROJECT_NAME LANGSMITH_HOST_REVISION_ID LOG_JSON LOG_DICT_TRACEBACKS REDIS_URI LANGCHAIN_CALLBACKS_BACKGROUND
  DD_TRACE_PSYCOPG_ENABLED DD_TRACE_REDIS_ENABLED LANGSMITH_DEPLOYMENT_NAME LANGGRAPH_CLOUD_LICENSE_KEY LANGSMITH_API_KEY
  LANGSMITH_ENDPOINT POSTGRES_URI_CUSTOM REDIS_URI_CUSTOM PATH PORT MOUNT_PREFIX LSD_ENV LSD_DD_API_KEY LSD_DD_ENDPOINT
  LSD_DEPLOYMENT_TYPE DATABASE_URL NODE_OPTIONS PYTHONPATH PYTHONHOME`.split(/\s+/),
);
/** Settings of our own programs, and of the dynamic linker, which would load what they name into them. */
const RESERVED_PREFIXES: readonly string[] = ['SALLYPORT_', 'LD_'];

export function isReservedName(name: string): boolean {
  return RESERVED.has(name) || RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix));
}

const MALFORMED = 'The name of a secret must be that of a variable: letters, digits and underscores';
const IS_RESERVED = 'This name is reserved: the platform sets it';

const name = z
  .string()
  .max(256, { abort: true })
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: MALFORMED, abort: true })
  .refine((text) => !isReservedName(text), IS_RESERVED);

const MAX_SECRETS = 200;

/** An empty value keeps the stored one. */
export const newSecrets = z
  .array(z.object({ name, value: z.string().max(65_536).nullable().optional() }))
  .max(MAX_SECRETS)
  .superRefine(requireDistinct);

/** For images: where their cluster finds the value. */
export const secretReferences = z
  .array(z.object({ name, secret_name: z.string().min(1).max(253), secret_key: z.string().min(1).max(253) }))
  .max(MAX_SECRETS)
  .superRefine(requireDistinct);

function requireDistinct(all: readonly { readonly name: string }[], context: z.RefinementCtx): void {
  const seen = new Set<string>();
  for (const [at, one] of all.entries()) {
    if (seen.has(one.name))
      context.addIssue({ code: 'custom', path: [at, 'name'], message: 'This name is repeated' });
    seen.add(one.name);
  }
}
