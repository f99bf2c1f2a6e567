// Whose pages may call the server: `http.cors` of the configuration file, and CORS_ALLOW_ORIGINS.
import { z } from '../../../base/schema.ts';

export type CorsSettings = {
  readonly origins: readonly string[];
  readonly originPattern: RegExp | undefined;
  /** Undefined: what the request asks for. */
  readonly methods: readonly string[] | undefined;
  readonly headers: readonly string[] | undefined;
  readonly exposed: readonly string[];
  readonly allowsCredentials: boolean;
  readonly maxAgeSeconds: number;
};

const names = z.array(z.string().min(1));
const origin = z
  .string()
  .refine(
    (text) => text === '*' || (URL.canParse(text) && new URL(text).origin === text),
    'must be * or an origin such as https://app.example.com, without a path',
  );

export const corsDocument = z
  .strictObject({
    allow_origins: z.array(origin).optional(),
    allow_methods: names.optional(),
    allow_headers: names.optional(),
    allow_credentials: z.boolean().default(false),
    allow_origin_regex: z.string().max(1000).refine(isPattern, 'must be a regular expression').optional(),
    expose_headers: names.default([]),
    max_age: z.int().min(0).max(86_400).default(600),
  })
  .refine(
    ({ allow_credentials: credentials, allow_origins: origins }) =>
      !credentials || !(origins ?? []).includes('*'),
    'allow_credentials needs a list of origins: * would let every page act as its reader',
  );

/** `origins` come from the variable, where the file names none. */
export function toCorsSettings(
  document: z.output<typeof corsDocument> | undefined,
  origins: readonly string[] | undefined,
): CorsSettings {
  const { allow_origin_regex: pattern } = document ?? {};
  const named = document?.allow_origins ?? origins;
  return {
    // Without a list everybody, as existing deployments expect; with a pattern alone, whom it matches.
    origins: named ?? (pattern === undefined && document?.allow_credentials !== true ? ['*'] : []),
    originPattern: pattern === undefined ? undefined : toPattern(pattern),
    methods: document?.allow_methods?.includes('*') ? undefined : document?.allow_methods,
    headers: document?.allow_headers?.includes('*')
      ? undefined
      : document?.allow_headers?.map((name) => name.toLowerCase()),
    exposed: document?.expose_headers ?? [],
    allowsCredentials: document?.allow_credentials ?? false,
    maxAgeSeconds: document?.max_age ?? 600,
  };
}

/** The whole origin must match: a pattern that finds a part would admit https://app.example.com.attacker.test. */
function toPattern(text: string): RegExp {
  return new RegExp(`^(?:${text})$`);
}

function isPattern(text: string): boolean {
  try {
    toPattern(text);
    return true;
  } catch {
    return false;
  }
}
