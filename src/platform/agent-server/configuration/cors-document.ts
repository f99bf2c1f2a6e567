// Whose pages may call the server: `http.cors` of the configuration file, and CORS_ALLOW_ORIGINS.
import { z } from '../../../base/schema.ts';
import { LOOPBACK_ORIGIN } from '../access/loopback.ts';

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

/**
 * `variable`: origins for a file that names none. `isOpenOnLoopback`: without authentication on loopback, pages of this machine
 * alone may call by default.
 */
export function toCorsSettings(
  document: z.output<typeof corsDocument> | undefined,
  variable: readonly string[] | undefined,
  isOpenOnLoopback: boolean = false,
): CorsSettings {
  const given = document ?? corsDocument.parse({});
  const { allow_origin_regex: pattern, allow_credentials: allowsCredentials } = given;
  // Without a list everybody, as existing deployments expect; with a pattern alone, whom it matches.
  const listedOrigins = given.allow_origins ?? variable;
  const isDefault = listedOrigins === undefined && pattern === undefined;
  const compiled = pattern === undefined ? undefined : toPattern(pattern);
  const isLocal = isDefault && isOpenOnLoopback;
  const origins = listedOrigins ?? (isDefault && !isLocal ? ['*'] : []);
  const headers = listed(given.allow_headers);
  return {
    // Browsers refuse credentials with `*`, and every page would act as its reader.
    origins: allowsCredentials ? origins.filter((one) => one !== '*') : origins,
    originPattern: isLocal ? LOOPBACK_ORIGIN : compiled,
    methods: listed(given.allow_methods),
    headers: headers?.map((name) => name.toLowerCase()),
    exposed: given.expose_headers,
    allowsCredentials,
    maxAgeSeconds: given.max_age,
  };
}

/** Undefined for everything. */
function listed(all: readonly string[] | undefined): readonly string[] | undefined {
  return all?.includes('*') === true ? undefined : all;
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
