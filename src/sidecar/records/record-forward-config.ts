// The part of the config that says where records go besides the log. Pure; opens no file.
import { z } from '../../base/schema.ts';
import { type Variable, asBoolean, asText } from '../../base/variable-overlay.ts';
import { isLoopbackListen } from '../listen-address.ts';

export type RecordForward = {
  /** Of the platform, with the prefix of its paths; without a slash at its end. */
  readonly url: string;
  /** `{sandbox}` in it stands for the id of the sandbox whose records are sent. */
  readonly tokenFile: string;
  /** The only authority that is trusted there; undefined: Node's roots. */
  readonly caFile: string | undefined;
};

/** As the operator writes it. */
export type RecordsDocument = {
  readonly forward?:
    | {
        readonly url: string;
        readonly token_file: string;
        readonly ca_file?: string | undefined;
        readonly cleartext: boolean;
      }
    | undefined;
};

const file = z.string().min(1);
const forward = z
  .strictObject({
    url: z.string().superRefine((text, context) => {
      const error = urlError(text);
      if (error !== undefined) context.addIssue({ code: 'custom', message: error });
    }),
    token_file: file,
    ca_file: file.optional(),
    cleartext: z
      .boolean()
      .default(false)
      .describe('The token may pass in clear, to a host that is not loopback'),
  })
  .superRefine(({ url, cleartext }, context) => {
    if (cleartext || !isCleartext(url)) return;
    context.addIssue({ code: 'custom', path: ['url'], message: CLEARTEXT });
  });

const CLEARTEXT =
  'The token would pass in clear: use https://, or set records.forward.cleartext (SALLYPORT_RECORDS_FORWARD_CLEARTEXT=true)';

export const recordsSchema: z.ZodType<RecordsDocument> = z
  .strictObject({ forward: forward.optional() })
  .prefault({});

export const recordVariables: readonly Variable[] = [
  { name: 'SALLYPORT_RECORDS_FORWARD_URL', path: ['records', 'forward', 'url'], read: asText },
  { name: 'SALLYPORT_RECORDS_FORWARD_TOKEN_FILE', path: ['records', 'forward', 'token_file'], read: asText },
  { name: 'SALLYPORT_RECORDS_FORWARD_CA', path: ['records', 'forward', 'ca_file'], read: asText },
  { name: 'SALLYPORT_RECORDS_FORWARD_CLEARTEXT', path: ['records', 'forward', 'cleartext'], read: asBoolean },
];

/** Undefined: records stay here. */
export function toRecordForward({ forward: found }: RecordsDocument): RecordForward | undefined {
  if (found === undefined) return undefined;
  return { url: found.url.replace(/\/+$/, ''), tokenFile: found.token_file, caFile: found.ca_file };
}

function urlError(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    return 'Input should be a URL of the platform, for example https://platform.example.com';
  const isBare = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return isBare ? undefined : 'Input should be a URL without user, password, query and fragment';
}

function isCleartext(text: string): boolean {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:') return false;
  return !isLoopbackListen({ host: url.hostname.replace(/^\[|\]$/g, '') });
}
