// The files of a box: an overlay of what the box changes over its snapshot. The changes lie in a file system of a size of
// their own: an ext4 in a file, or a tmpfs where this process may not mount that.
import { truncate, writeFile } from 'node:fs/promises';
import { requireCommand } from '../command.ts';
import type { MountNamespace } from './namespaces/mount-namespace.ts';

export type StorageKind = 'loop' | 'tmpfs';

export type BoxMounts = {
  readonly id: string;
  readonly kind: StorageKind;
  readonly capacityBytes: number;
  /** The file of the ext4. */
  readonly image: string;
  /** The root of the snapshot, and our files over it. */
  readonly snapshot: string;
  readonly files: string;
};

/** Of a box that asks for none: in a file that grows, or in memory. */
export const defaultCapacityBytes: Readonly<Record<StorageKind, number>> = {
  loop: 2 * 1024 ** 3,
  tmpfs: 256 * 1024 ** 2,
};

/** The kernel refuses an ext4 with a journal that is smaller. */
export const MIN_CAPACITY_BYTES: number = 8 * 1024 * 1024;
/** A tmpfs keeps its inodes in memory that its size does not count. */
const BYTES_PER_INODE = 16_384;

/** A sparse file with an empty ext4: it grows as the box writes, and shrinks as the box deletes. */
export async function createImage(image: string, bytes: number): Promise<void> {
  await writeFile(image, '', { mode: 0o600, flag: 'wx' });
  await truncate(image, bytes);
  // No blocks for root: the capacity is the box's. An error must not go on damaging the file system.
  const options = [
    '-q',
    '-F',
    '-m',
    '0',
    '-e',
    'remount-ro',
    '-E',
    'lazy_itable_init=1,lazy_journal_init=1,nodiscard',
  ];
  await requireCommand('the file system of the box could not be made', ['mkfs.ext4', ...options, image]);
}

// Names relative to the directory of the box: the box sees the options of its mounts, and paths of the host are none of its
// concern. What is mounted already stays: the tmpfs of a stopped box holds its files.
const MOUNT = `
cd "$1"
isMounted() { mountpoint -q "$1"; }
# In a new directory nothing is: four programs less for each new box.
if mkdir -m 0711 "$2" 2>/dev/null; then isMounted() { false; }; fi
cd "$2"
mkdir -p disk snapshot files root
if ! isMounted disk; then
  if [ "$3" = loop ]; then mount -n -o loop,nosuid,nodev,noatime,discard "$4" disk
  else mount -n -t tmpfs -o "size=$5,nr_inodes=$6,mode=0700,nosuid,nodev" tmpfs disk; fi
fi
mkdir -p -m 0755 disk/upper disk/work
isMounted snapshot || mount -n --bind "$7" snapshot
isMounted files || mount -n --bind "$8" files
isMounted root || mount -n -t overlay -o "nosuid,nodev,lowerdir=files:snapshot,upperdir=disk/upper,workdir=disk/work$9" box root
`;

/** Returns the path of the mounted root within the mount namespace. */
export async function mountBox(
  namespace: MountNamespace,
  mounts: string,
  { id, kind, capacityBytes, image, snapshot, files }: BoxMounts,
): Promise<string> {
  const inodes = Math.ceil(capacityBytes / BYTES_PER_INODE);
  // In a user namespace an overlay keeps its notes in attributes that any user may set.
  const options = namespace.privilege === 'root' ? '' : ',userxattr';
  const sizes = [String(capacityBytes), String(inodes)];
  await namespace.require('the files of the box could not be mounted', MOUNT, [
    ...[mounts, id, kind, image, ...sizes, snapshot, files, options],
  ]);
  return `${mounts}/${id}/root`;
}

// 1: errors were corrected. Not while it is mounted: that takes a capability which root in a container may lack.
const GROW_IMAGE = `
truncate -s "$2" "$1"
e2fsck -f -p "$1" >&2 || [ $? = 1 ]
resize2fs "$1" "$3K" >/dev/null
`;
const GROW_MEMORY = `
cd "$1/$2"
if mountpoint -q disk; then mount -n -o "remount,size=$3,nr_inodes=$4" disk; fi
`;

/** Of a box that is not mounted, but for a tmpfs. The same size again, after a box host that was killed, is no error. */
export async function growFiles(
  namespace: MountNamespace,
  mounts: string,
  { id, kind, image, capacityBytes }: Pick<BoxMounts, 'id' | 'kind' | 'image' | 'capacityBytes'>,
): Promise<void> {
  const inodes = Math.ceil(capacityBytes / BYTES_PER_INODE);
  const kilobytes = Math.floor(capacityBytes / 4096) * 4;
  const [script, args] =
    kind === 'loop'
      ? [GROW_IMAGE, [image, capacityBytes, kilobytes]]
      : [GROW_MEMORY, [mounts, id, capacityBytes, inodes]];
  await namespace.require('the files of the box could not be made bigger', script, args.map(String));
}

// Something may hold a mount for a moment longer than its process lives; then it goes with its last user.
const UNMOUNT = `
cd "$1/$2" 2>/dev/null || exit 0
shift 2
for name; do
  if mountpoint -q "$name"; then umount -n "$name" || umount -n -l "$name"; fi
done
`;
const REMOVE = `${UNMOUNT}
cd ..
rmdir "$OLDPWD"/root "$OLDPWD"/files "$OLDPWD"/snapshot "$OLDPWD"/disk "$OLDPWD"
`;

/** What the box wrote stays: in the image, or in the tmpfs, which stays mounted. */
export async function unmountBox(
  namespace: MountNamespace,
  mounts: string,
  { id, kind }: Pick<BoxMounts, 'id' | 'kind'>,
): Promise<void> {
  const names = ['root', 'files', 'snapshot', ...(kind === 'loop' ? ['disk'] : [])];
  await namespace.require('the files of the box could not be unmounted', UNMOUNT, [mounts, id, ...names]);
}

/** Until `mountBox` is called again. */
export async function unmountRoot(namespace: MountNamespace, mounts: string, id: string): Promise<void> {
  await namespace.require('the files of the box could not be unmounted', UNMOUNT, [mounts, id, 'root']);
}

/** Of a tmpfs, this deletes the files. */
export async function removeMounts(namespace: MountNamespace, mounts: string, id: string): Promise<void> {
  const names = ['root', 'files', 'snapshot', 'disk'];
  await namespace.require('the files of the box could not be removed', REMOVE, [mounts, id, ...names]);
}

const OPEN_MOUNTS = `
[ -d "$1" ] || mkdir -m 0711 "$1"
mount -n -t tmpfs -o size=16m,mode=0711,nosuid,nodev tmpfs "$1"
mkdir -m 0755 "$1/.programs"
`;
const ADD_PROGRAM = `
if [ -d "$3" ]; then mkdir "$1/.programs/$2"; else : >"$1/.programs/$2"; fi
mount -n --bind "$3" "$1/.programs/$2"
`;

/**
 * The directory in which all mounts of boxes lie. bwrap runs as the user of a box and must be able to enter it, while the
 * directories of our data are closed to everyone.
 */
export async function openMounts(
  namespace: MountNamespace,
  mounts: string,
  programs: Readonly<Record<string, string>>,
): Promise<void> {
  await namespace.require(`the mounts of boxes cannot be made in ${mounts}`, OPEN_MOUNTS, [mounts]);
  for (const [name, source] of Object.entries(programs))
    await namespace.require(`${source} cannot be shown to boxes`, ADD_PROGRAM, [mounts, name, source]);
}

export function programsIn(mounts: string): string {
  return `${mounts}/.programs`;
}
