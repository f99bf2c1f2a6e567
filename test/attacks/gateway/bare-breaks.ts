// Which of the framing rows break bare http-proxy-3: its target gets a request that must be refused, another one than was sent, or
// bytes that must be removed. Every other row is one that it withstands.

/** By class. F-10 is not among them: node:http writes chunks anew, so that no hop after it can read them otherwise. */
export const bareBreaks: Readonly<Record<string, readonly string[]>> = {
  'F-01': ['chunked-delete', 'chunked-delete-in-two-writes', 'chunked-options'],
  'F-04': [
    'leading-zero',
    'leading-zeros',
    'llhttp-surrounding-tabs',
    'llhttp-zeroes',
    'mal-cl-tab-before-value',
    'smug-cl-double-zero',
    'smug-cl-leading-zeros',
    'tab-after',
    'tab-among-spaces',
    'tab-before',
  ],
  'F-05': ['rfc9112-3-multi-sp-request-line', 'two-spaces-after-target', 'two-spaces-before-target'],
  'F-07': ['cr-before-request-line', 'lf-before-request-line', 'two-empty-lines-first'],
  'F-08': [
    'deflate-chunked',
    'gzip-chunked',
    'identity-chunked',
    'identity-then-chunked',
    'leading-comma',
    'llhttp-deflate-chunked',
    'llhttp-deflate-then-chunked',
    'smug-te-leading-comma',
    'smug-te-tab-before-value',
    'spaced-leading-comma',
    'tab-before',
  ],
  'F-09': ['alone', 'kept-alive', 'smug-te-http10', 'upper-case', 'with-proxy-keep-alive'],
  'F-11': ['longer-than-length'],
  'F-12': ['asked-for', 'coding-underscored', 'length-underscored', 'over-8-kib'],
  'F-13': ['length-after-200', 'length-as-101st'],
  'F-14': ['coding-beside-length', 'length-twice', 'norm-underscore-te'],
  'F-16': ['empty', 'llhttp-many-connection-tokens', 'nominated-but-absent', 'not-nominated'],
  'F-17': ['settings-alone'],
  'F-18': ['http-0.9-spelled', 'http-2.0-as-text', 'llhttp-options-of-rtsp', 'rtsp'],
  'F-19': ['bare', 'credential', 'llhttp-no-version', 'post', 'with-host'],
  'F-22': [
    'agent-credential-beside-it',
    'continue-and-unknown',
    'list-of-twice',
    'prefix',
    'quoted',
    'twice',
    'unknown-beside',
  ],
};

/** Whether these break it depends on which side is faster: the body that is sent, or the response that declines it. */
export const undecided: readonly string[] = [
  'F-22 declined',
  'F-22 nominated',
  'F-22 parameter',
  'F-15 response-before-the-body',
];
