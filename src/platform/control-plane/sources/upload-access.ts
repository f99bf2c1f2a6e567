// Access with the signature of an upload: the call knows the upload and its workspace, and no caller.
import type { Access, Entry, Grant } from '../../api/access.ts';
import { type OpenUpload, openUpload } from './uploads.ts';

export type UploadGrant = Grant & { readonly target: OpenUpload };

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
/** Of no upload. */
const NONE = '00000000-0000-0000-0000-000000000000';

export const withUploadSignature: Access<UploadGrant> = {
  to: 'upload',
  schemes: ['Upload Signature'],
  parameters: [],
  enter: (entry) => grant(entry, false),
  confirm: (entry) => grant(entry, true),
  /** Uploads of one organization, which may have any number of workspaces, leave places to others. */
  callerOf: ({ target }) => target.organizationId,
};

/** Of the target alone: the rest of the request is read when it may send a source. */
async function grant({ db, head }: Pick<Entry, 'db' | 'head'>, hasBegun: boolean): Promise<UploadGrant> {
  const [path = '', search = ''] = head.target.split('?', 2);
  const id = path.slice(path.lastIndexOf('/') + 1);
  const signature = new URLSearchParams(search).get('signature') ?? '';
  const target = await openUpload(db, UUID.test(id) ? id : NONE, { signature, hasBegun });
  const { organizationId, workspaceId } = target;
  return { target, organizationId, workspaceId, party: { organization: organizationId, key: target.id } };
}
