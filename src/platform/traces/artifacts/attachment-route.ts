// `GET /attachments`: the content of an attachment, by an address with a signature. Served as a download, which no browser shows or
// runs as a page of this platform.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import type { Access, Entry, Grant } from '../../api/access.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { byteStream } from '../../api/responses.ts';
import type { Reader } from '../../store/database.ts';
import type { Artifacts } from './artifacts.ts';
import { isExpired, isSigned, signingKeys } from './signed-address.ts';
import '../store/trace-rows.ts';

type Attachment = { readonly object: string; readonly name: string; readonly mime_type: string };
type AttachmentGrant = Grant & { readonly attachment: Attachment };

const withSignature: Access<AttachmentGrant> = {
  to: 'attachment',
  schemes: ['Attachment Signature'],
  parameters: [],
  async enter(entry) {
    // A page that stayed open has expired addresses. Nobody gains anything by guessing the signature of one.
    if (isExpired(queryOf(entry), entry.authenticator.now())) throw notValid();
    try {
      return await grant(entry);
    } catch (error) {
      // Guesses of signatures are failed attempts, as those of keys are.
      const isRefused = error instanceof DomainError && error.kind === 'forbidden';
      throw isRefused ? entry.authenticator.countFailure(entry.peer, error) : error;
    }
  },
  confirm: grant,
  callerOf: ({ attachment }) => attachment.object,
};

/** Of the target alone. Throws `forbidden` first, and `not_found` only for who has a signature. */
async function grant(entry: Entry): Promise<AttachmentGrant> {
  const { db, authenticator } = entry;
  const query = queryOf(entry);
  if (!isSigned(await signingKeys(db), query, authenticator.now())) throw notValid();
  const {
    organization_id: organizationId,
    workspace_id: workspaceId,
    ...attachment
  } = await find(db, query.get('object') ?? '');
  return {
    ...{ attachment, organizationId, workspaceId },
    party: { organization: organizationId, key: attachment.object },
  };
}

function queryOf({ head }: Pick<Entry, 'head'>): URLSearchParams {
  const [, search = ''] = head.target.split('?', 2);
  return new URLSearchParams(search);
}

const notValid = (): DomainError =>
  new DomainError('forbidden', 'The signature of this address is not valid any more: read the run again');

function find(db: Reader, object: string) {
  return db
    .selectFrom('trace_attachments as a')
    .innerJoin('workspaces as w', 'w.id', 'a.workspace_id')
    .select(['a.object', 'a.name', 'a.mime_type', 'a.workspace_id', 'w.organization_id'])
    .where('a.object', '=', object)
    .limit(1)
    .executeTakeFirstOrThrow(() => new DomainError('not_found', 'This attachment has been removed'));
}

export function createAttachmentRoute(artifacts: Pick<Artifacts, 'read'>): Route {
  return defineRoute({
    tag: 'Runs',
    method: 'GET',
    path: '/attachments',
    // Nobody but this platform writes such an address.
    unknownNames: 'refuse',
    summary: 'Download an attachment of a run, by an address of its `s3_urls`',
    query: z.strictObject({
      object: z.string().max(256),
      expires: z.string().max(16),
      signature: z.string().max(64),
    }),
    access: withSignature,
    tracking: { untracked: 'the address was given by a tracked read of the run' },
    responses: { 200: byteStream<string>('application/octet-stream') },
    failures: [404],
    limits: { running: { total: 256, perCaller: 16 } },
    handle: async ({ attachment }) => ({ source: attachment.object, fields: downloadFields(attachment) }),
    async *stream(_, object) {
      yield* await artifacts.read(object);
    },
  });
}

/** Types that browsers show without running anything; the others are bytes to them. */
const SHOWN = /^(?:image\/(?!svg)|audio\/|video\/|text\/plain$|application\/(?:json|pdf)$)/;

export function downloadFields({ name, mime_type: type }: Pick<Attachment, 'name' | 'mime_type'>) {
  return {
    'Content-Type': SHOWN.test(type) ? type : 'application/octet-stream',
    'Content-Disposition': `attachment; filename*=UTF-8''${encodeName(name)}`,
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'Cross-Origin-Resource-Policy': 'same-origin',
  };
}

/** RFC 8187 §3.2.1, without what is a path to a file system. */
function encodeName(name: string): string {
  const plain = name
    .replaceAll(/[\p{Cc}\p{Cf}/\\:]/gu, '_')
    .slice(0, 120)
    .toWellFormed();
  return encodeURIComponent(plain).replaceAll(/['()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
}
