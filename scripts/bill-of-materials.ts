// The software bill of materials of a build, as CycloneDX 1.6: the packages whose code is in the bundle, those that an install
// brings, and those that it may bring. All that it says comes from the lockfile, so that equal builds have equal bills.
import { createHash } from 'node:crypto';

export type LockedPackage = {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
};

/** `packages` of package-lock.json: by path, with the package itself at ''. */
export type Lockfile = { readonly packages: Readonly<Record<string, LockedPackage>> };

type Manifest = LockedPackage & { readonly name: string; readonly description?: string };

/** `bundled`: the paths in the lockfile of the packages in the bundle. */
export function billOfMaterials(manifest: Manifest, lock: Lockfile, bundled: readonly string[]): object {
  const { packages } = lock;
  const required = closure(packages, locate(packages, '', Object.keys(manifest.dependencies ?? {})));
  const chosen = locate(
    packages,
    '',
    Object.keys({ ...manifest.optionalDependencies, ...manifest.peerDependencies }),
  );
  const all = [...new Set([...bundled, ...required, ...closure(packages, chosen)])].toSorted();
  // One version may be installed in two places.
  const byRef = new Map(all.toReversed().map((path) => [refOf(path, packages[path] ?? {}), path]));
  const paths = [...byRef.values()].toSorted();
  const isRequired = new Set([...bundled, ...required]);
  const components = paths.map((path) => ({
    ...describe(path, packages[path] ?? {}),
    scope: isRequired.has(path) ? 'required' : 'optional',
    ...(bundled.includes(path) && { properties: [{ name: 'sallyport:bundled', value: 'true' }] }),
  }));
  const refs = new Map(paths.map((path) => [path, refOf(path, packages[path] ?? {})]));
  const direct = [
    ...new Set([...bundled, ...locate(packages, '', Object.keys(manifest.dependencies ?? {}))]),
  ];
  const root = describe(`node_modules/${manifest.name}`, manifest);
  const dependencies = [
    { ref: root['bom-ref'], dependsOn: refsOf(direct, refs) },
    ...paths.map((path) => ({
      ref: refs.get(path) ?? '',
      dependsOn: refsOf(dependenciesOf(packages, path), refs),
    })),
  ];
  const content = {
    metadata: { component: { ...root, type: 'application', description: manifest.description } },
    components,
    dependencies,
  };
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}`,
    version: 1,
    ...content,
  };
}

/** The path of the package that a file is in, as the lockfile names it. */
export function packagePathOf(file: string): string | undefined {
  return /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0];
}

function describe(path: string, locked: LockedPackage) {
  const name = nameOf(path);
  const [algorithm, digest] = locked.integrity?.split('-') ?? [];
  const isKnown = algorithm === 'sha512' && digest !== undefined;
  return {
    type: 'library',
    'bom-ref': refOf(path, locked),
    name,
    version: locked.version,
    ...(isKnown && { hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }] }),
    ...(locked.license !== undefined && { licenses: [{ expression: locked.license }] }),
    purl: refOf(path, locked),
    ...(locked.resolved !== undefined && {
      externalReferences: [{ type: 'distribution', url: locked.resolved }],
    }),
  };
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/** A package URL, which also identifies the component within the bill. */
function refOf(path: string, { version }: LockedPackage): string {
  return `pkg:npm/${nameOf(path).replace('@', '%40')}@${version ?? ''}`;
}

/** All that packages need, themselves included. */
function closure(packages: Lockfile['packages'], paths: readonly string[]): readonly string[] {
  const found = new Set(paths);
  for (const path of found) for (const other of dependenciesOf(packages, path)) found.add(other);
  return [...found];
}

function dependenciesOf(packages: Lockfile['packages'], path: string): readonly string[] {
  const { dependencies, optionalDependencies } = packages[path] ?? {};
  return locate(packages, path, Object.keys({ ...dependencies, ...optionalDependencies }));
}

/** Where the packages are that `path` imports by these names: the nearest folder above it that has them. */
function locate(packages: Lockfile['packages'], path: string, names: readonly string[]): readonly string[] {
  const found = names.map((name) => {
    const folders = path.split('/node_modules/').map((_, at, all) => all.slice(0, all.length - at));
    const places = [...folders.map((parts) => `${parts.join('/node_modules/')}/node_modules/${name}`)];
    return [...places, `node_modules/${name}`].find((place) => place in packages);
  });
  return found.filter((place) => place !== undefined);
}

function refsOf(paths: readonly string[], refs: ReadonlyMap<string, string>): readonly string[] {
  const known = paths.map((path) => refs.get(path)).filter((ref) => ref !== undefined);
  return [...new Set(known)].toSorted();
}

/** A UUID of version 8: of what a bill says, so that it is the same for the same build and no other. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
