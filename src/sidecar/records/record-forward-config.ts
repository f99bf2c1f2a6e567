// The part of the config that says where records go besides the log. Pure; opens no file.
import { z } from '../../base/schema.ts';
import { type Variable, asBoolean, asText } from '../../base/variable-overlay.ts';
import { isLoopbackListen } from '../listen-address.ts';

const CLEARTEXT =
  'The token would be sent in plaintext: use https://, or set records.forward.cleartext ' +
  '(SALLYPORT_RECORDS_FORWARD_CLEARTEXT=true)';

const file = z.string().min(1);
const forward = z
  .strictObject({
    url: z.string().superRefine((text, context) => {
      const error = urlError(text);
      if (error !== undefined) context.addIssue({ code: 'custom', message: error });
    }),
    token_file: file,
    ca_file: file.optional(),
    cleartext: z.boolean().default(false),
  })
  .superRefine(({ url, cleartext }, context) => {
    if (!cleartext && isCleartext(url))
      context.addIssue({ code: 'custom', path: ['url'], message: CLEARTEXT });
  })
  .transform((given) => ({
    /** The base URL of the platform, without a slash at its end. */
    url: given.url.replace(/\/+$/, ''),
    /** `{sandbox}` in it stands for the id of the sandbox whose records are sent. */
    tokenFile: given.token_file,
    /** The only CA that is trusted for it; undefined: Node's roots. */
    caFile: given.ca_file,
  }));

export type RecordForward = Readonly<z.infer<typeof forward>>;

export const recordsSchema = z.strictObject({ forward: forward.optional() }).prefault({});

export const recordVariables: readonly Variable[] = [
  { name: 'SALLYPORT_RECORDS_FORWARD_URL', path: ['records', 'forward', 'url'], read: asText },
  { name: 'SALLYPORT_RECORDS_FORWARD_TOKEN_FILE', path: ['records', 'forward', 'token_file'], read: asText },
  { name: 'SALLYPORT_RECORDS_FORWARD_CA', path: ['records', 'forward', 'ca_file'], read: asText },
  { name: 'SALLYPORT_RECORDS_FORWARD_CLEARTEXT', path: ['records', 'forward', 'cleartext'], read: asBoolean },
];

function urlError(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    return 'Input must be a URL of the platform, for example https://platform.example.com';
  const isBare = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return isBare ? undefined : 'Input must be a URL without user, password, query and fragment';
}

function isCleartext(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'http:' && !isLoopbackListen({ host: url.hostname.replace(/^\[|\]$/g, '') });
}
