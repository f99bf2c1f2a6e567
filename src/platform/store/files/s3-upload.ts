// The only file that imports the uploads of the S3 client, which are loaded with the first one: a stream of an unknown length becomes
// an object in parts, or in one request where it is short.
import type { Readable } from 'node:stream';
import type { S3 } from './s3-client.ts';

type Command = Parameters<S3['client']['send']>[0];

export type ObjectUpload = {
  readonly client: S3['client'];
  /** In place of that of the client: sends each request of the upload. */
  send(command: Command): Promise<unknown>;
  readonly object: { readonly Bucket: string; readonly Key: string };
  readonly body: Readable;
};

/** The smallest that the service takes: parts are held until they are sent. */
const PART_BYTES = 5 * 1024 * 1024;
const PARTS_AT_ONCE = 2;

/** Where it fails, the upload is aborted, and the error that came first is thrown. */
export async function uploadObject({ client, send, object, body }: ObjectUpload): Promise<void> {
  const { Upload } = await loadPackage();
  const sender = { config: client.config, send } as unknown as S3['client'];
  const params = { ...object, Body: body };
  await new Upload({ client: sender, params, partSize: PART_BYTES, queueSize: PARTS_AT_ONCE }).done();
}

/** In a bundle the package, which is CommonJS, is the default export of its chunk and has no other one. */
async function loadPackage() {
  const loaded = await import('@aws-sdk/lib-storage');
  return 'Upload' in loaded ? loaded : (loaded as { readonly default: typeof loaded }).default;
}
