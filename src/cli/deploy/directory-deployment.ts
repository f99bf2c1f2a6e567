// `sallyport deploy DIR`: packs a directory, uploads it, makes a revision of it, and waits until that is deployed.
import { InputError } from '../../base/input-error.ts';
import type { ControlPlane, Deployment } from './control-plane.ts';
import { escapeControls } from '../issue-lines.ts';
import type { Output } from './output.ts';
import { waitForRevision } from './revision-waiting.ts';
import { inMebibytes, LARGE_ARCHIVE_BYTES, packSource, type SourceArchive } from './source-archive.ts';
import { nameOf, type SourceDirectory } from './source-directory.ts';

export type DeployFlags = {
  readonly name: string | undefined;
  readonly proxyProfile: string | undefined;
  readonly installCommand: string | undefined;
  readonly buildCommand: string | undefined;
  readonly waits: boolean;
};

/** Exit code 0 when the revision is deployed, or queued if nobody waits for it; 1 when it failed. */
export async function deployDirectory(
  plane: ControlPlane,
  source: SourceDirectory,
  flags: DeployFlags,
  output: Output,
): Promise<number> {
  for (const note of source.notes) output.progress(note);
  await using archive = await packSource(source.root, source.files.paths);
  describeArchive(archive, source, output);
  const proxyProfileId =
    flags.proxyProfile === undefined ? undefined : await plane.findProfile(flags.proxyProfile);
  const { secrets, configPath } = source;
  const name = flags.name ?? nameOf(source.root);
  const { id } = await findOrCreate(plane, name, { secrets, proxyProfileId }, output);
  const objectPath = await plane.upload(id, () => archive.read(), archive.bytes);
  const { installCommand, buildCommand, waits } = flags;
  const changes = { objectPath, configPath, installCommand, buildCommand, secrets, proxyProfileId };
  const changed = await plane.change(id, changes);
  const revisionId = changed.latest_revision_id ?? (await plane.revisions(id, 1))[0]?.id;
  if (revisionId === undefined) throw new Error(`the deployment ${name} has no revision after the upload`);
  if (waits) return waitForRevision(plane, { id, name }, revisionId, { output });
  const { status } = await plane.revision(id, revisionId);
  output.result({ deployment_id: id, name, revision_id: revisionId, status, url: null }, [revisionId]);
  return 0;
}

function describeArchive({ bytes, sha256 }: SourceArchive, { files }: SourceDirectory, output: Output): void {
  const { paths, irregular } = files;
  output.progress(`packed ${paths.length} files, ${inMebibytes(bytes)}, sha256 ${sha256}`);
  if (bytes > LARGE_ARCHIVE_BYTES)
    output.progress(
      `warning: the archive is large; leave out what is no source in .gitignore or .dockerignore`,
    );
  if (irregular.length === 0) return;
  const more = irregular.length > 5 ? ` and ${irregular.length - 5} more` : '';
  const named = escapeControls(irregular.slice(0, 5).join(', '));
  output.progress(`left out, because they are links or no files: ${named}${more}`);
}

type Created = Parameters<ControlPlane['create']>[1];

async function findOrCreate(
  plane: ControlPlane,
  name: string,
  created: Created,
  output: Output,
): Promise<Deployment> {
  const found = await plane.findExisting(name);
  if (found === undefined) {
    const deployment = await plane.create(name, created);
    output.progress(`created the deployment ${name} (${deployment.id})`);
    return deployment;
  }
  if (found.source !== undefined && found.source !== 'internal_source')
    throw new InputError(
      `the deployment ${name} has the source ${found.source}, which takes no directory: give another --name`,
    );
  output.progress(`found the deployment ${name} (${found.id})`);
  return found;
}
