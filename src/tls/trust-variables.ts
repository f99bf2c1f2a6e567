// The variables that name files of CA certificates for clients. `run`, `env` and the script of the reserved host set them.

/** Variables of many programs that name a file of CA certificates which REPLACES a client's own roots. */
export const sharedBundleVariables: readonly string[] = [
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'GIT_SSL_CAINFO',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
  'CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE',
  'NIX_SSL_CERT_FILE',
  'CODEX_CA_CERTIFICATE',
  'BUNDLE_SSL_CA_CERT',
  'HEX_CACERTS_PATH',
  'DENO_CERT',
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
];

/** Such variables of one program each. */
export const programBundleVariables = {
  httplib2: 'HTTPLIB2_CA_CERTS',
  npm: 'npm_config_cafile',
  perl: 'PERL_LWP_SSL_CA_FILE',
  yarn: 'YARN_HTTPS_CA_FILE_PATH',
} as const;

export const bundleVariables: readonly string[] = [
  ...sharedBundleVariables,
  ...Object.values(programBundleVariables),
];

/** Names a file of CA certificates that Node trusts besides its own roots. */
export const extraVariable = 'NODE_EXTRA_CA_CERTS';
