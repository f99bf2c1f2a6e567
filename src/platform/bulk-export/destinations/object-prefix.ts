// The names of objects below the prefix of a destination. Only characters that mean the same to every S3 service, to every reader
// and in every URL are allowed: a name that one of them normalizes would lead out of the prefix.

/** Of the public API. */
const MAX_PREFIX = 2_048;
const ALLOWED = /^[A-Za-z0-9!_.*'()/=-]*$/;

/** What is wrong with a prefix; undefined for one that can be used. Empty: the root of the bucket. */
export function findPrefixProblem(prefix: string): string | undefined {
  if (prefix.length > MAX_PREFIX) return `Input must have at most ${MAX_PREFIX} characters`;
  if (!ALLOWED.test(prefix)) return "Input must consist of letters, digits and the characters !-_.*'()/=";
  if (prefix.startsWith('/')) return 'Input must not begin with a slash';
  if (prefix.includes('//')) return 'Input must not contain two slashes in a row';
  if (prefix.includes('..')) return 'Input must not contain two dots in a row';
  return undefined;
}

/** The key of an object: `<prefix>/<name>`. A slash at the end of the prefix is the one in front of the name. */
export function toObjectKey(prefix: string, name: string): string {
  const folder = prefix.replace(/\/$/, '');
  return folder === '' ? name : `${folder}/${name}`;
}
