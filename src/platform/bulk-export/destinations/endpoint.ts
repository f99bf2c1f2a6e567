// Where the requests to a destination go: the endpoint that its configuration names, or AWS, and how the bucket is named in them.

/** `in_endpoint`: the address of the endpoint is that of the bucket. */
export type Addressing = 'path' | 'virtual' | 'in_endpoint';

/** Of the operator. Endpoints are named by their origins, and those of AWS by `aws`. */
export type EndpointRules = {
  /** Undefined: all. */
  readonly allowed: ReadonlySet<string> | undefined;
  /** Those that may be reached without TLS. */
  readonly cleartext: ReadonlySet<string>;
  /** Those that may get the credentials of this installation. */
  readonly environmentCredentials: ReadonlySet<string>;
};

/** What is wrong with an `endpoint_url`, or with none; undefined where it can be used. */
export function findEndpointProblem(
  text: string | undefined,
  { allowed, cleartext }: EndpointRules,
): string | undefined {
  if (allowed !== undefined && !allowed.has(originOf(text))) return NOT_ALLOWED;
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.hostname === '')
    return 'Input must be a URL such as https://s3.example.com';
  if (url.username !== '' || url.password !== '') return 'Input must not contain credentials';
  if (/[?#]/.test(text)) return 'Input must have no query and no fragment';
  if (!/^[A-Za-z0-9/._~-]*$/.test(url.pathname))
    return 'The path of the URL has characters that are not allowed';
  if (url.protocol === 'http:' && !cleartext.has(url.origin))
    return 'Input must begin with https://; the operator allows others by exports.cleartext_endpoints';
  return undefined;
}

/** Of a destination that was created when the operator allowed its endpoint. */
export const NO_LONGER_ALLOWED =
  'Invalid endpoint: the operator does not allow the endpoint of this destination any more (exports.allowed_endpoints, exports.cleartext_endpoints): create a destination with another one';

/** Whether a destination without credentials may use those of this machine. */
export function mayUseEnvironment(endpoint: string | undefined, rules: EndpointRules): boolean {
  return rules.environmentCredentials.has(originOf(endpoint));
}

/** Empty for a text that is no URL. */
function originOf(endpoint: string | undefined): string {
  return endpoint === undefined ? 'aws' : (URL.parse(endpoint)?.origin ?? '');
}

const NOT_ALLOWED = 'The operator allows the endpoints that exports.allowed_endpoints lists, and no other';

export type AddressingChoice = {
  readonly endpoint_url?: string | null | undefined;
  readonly include_bucket_in_prefix: boolean;
  readonly config_kwargs_s3?:
    | { readonly addressing_style?: 'auto' | 'virtual' | 'path' | undefined }
    | null
    | undefined;
};

/** `auto` as boto3 decides it: the bucket is in the path where an endpoint is named, and in the host name where none is. */
export function decideAddressing(config: AddressingChoice): Addressing {
  const { endpoint_url: endpoint, include_bucket_in_prefix: isBucketSeparate } = config;
  const { addressing_style: style = 'auto' } = config.config_kwargs_s3 ?? {};
  const hasEndpoint = endpoint !== undefined && endpoint !== null;
  if (hasEndpoint && !isBucketSeparate) return 'in_endpoint';
  if (style !== 'auto') return style;
  return hasEndpoint ? 'path' : 'virtual';
}
